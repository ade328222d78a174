"""An uploader of the rig, and holds of its checkpoints."""

from __future__ import annotations

import pytest

from podferry.sidecar.checkpoint.detect.detector import scan_checkpoints
from podferry.sidecar.checkpoint.upload.hardlink_hold import HardlinkHolds


@pytest.fixture
def uploader(rig):
    return rig.uploader()


@pytest.fixture
def link(rig):
    holds = HardlinkHolds(rig.holds)
    return lambda name: holds.link(scan_checkpoints(rig.root)[1][name], rig.root, 1.0)
