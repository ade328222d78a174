"""A dataset of archives, without pauses between retries."""

from __future__ import annotations

import pytest

from tests.support.archive_site import Site


@pytest.fixture(autouse=True)
def quick_archives(no_waiting):
    """See `no_waiting`."""


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path)
    yield made
    # Nothing may leave the staging directory.
    assert {path.name for path in tmp_path.iterdir()} <= {"stage", "claims"}
