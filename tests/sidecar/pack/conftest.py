"""Small batches, no waiting between retries, and a site."""

from __future__ import annotations

import pytest
import stamina

from podferry.sidecar.pack import builder
from tests.support.pack_site import Site


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(builder, "BATCH_BYTES", 4000)
    with stamina.set_testing(True, attempts=100, cap=True):
        yield


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)
