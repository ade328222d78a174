"""A directory of outputs and its destination."""

from __future__ import annotations

import tempfile
from pathlib import Path

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


@pytest.fixture
def memory_site(quick_retries):
    """On tmpfs, as in a pod: a store through a mapping changes no time, but for the first to each page."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as base:
        made = Site(Path(base))
        yield made
        del CONTENTS[made.bucket]
