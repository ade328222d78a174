"""A directory of outputs and its destination."""

from __future__ import annotations

import pytest

from podferry.sidecar.outputs import output_job
from podferry.storage.memory.store import CONTENTS
from tests.support.output_site import Site


@pytest.fixture
def site(tmp_path, quick_retries, monkeypatch):
    monkeypatch.setattr(output_job, "ROUND_PAUSE_SECONDS", 0.001)
    made = Site(tmp_path)
    yield made
    del CONTENTS[made.bucket]
