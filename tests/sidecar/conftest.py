"""Fixtures of the checkpoint rig, in both modes of watching."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import stamina

from tests.support.checkpoint_rig import Rig


@pytest.fixture
def quick_retries() -> Iterator[None]:
    """Three attempts at everything, without a pause between them."""
    with stamina.set_testing(True, attempts=3, cap=True):
        yield


@pytest.fixture
def rig(tmp_path: Path, quick_retries: None) -> Rig:
    """A rig on inotify."""
    return Rig(tmp_path, polling=False)


@pytest.fixture(params=["inotify", "polling"])
def any_rig(request: pytest.FixtureRequest, tmp_path: Path, quick_retries: None) -> Rig:
    """A rig in each of the two modes of watching."""
    return Rig(tmp_path, polling=request.param == "polling")
