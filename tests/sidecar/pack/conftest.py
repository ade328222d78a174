"""Small batches, no waiting between retries, and a site."""

from __future__ import annotations

import pytest

from podferry.sidecar.pack import builder
from tests.support.pack_site import Site


@pytest.fixture(autouse=True)
def small_batches(no_waiting, monkeypatch):
    monkeypatch.setattr(builder, "BATCH_BYTES", 4000)


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)
