"""The components that a checkpoint pipeline connects."""

from __future__ import annotations

from dataclasses import dataclass

from podferry.sidecar.checkpoint.commit.committer import Committer
from podferry.sidecar.checkpoint.commit.retention import Retention
from podferry.sidecar.checkpoint.detect.detector import Detector
from podferry.sidecar.checkpoint.gang.coordinator import GangCoordinator
from podferry.sidecar.checkpoint.upload.hardlink_hold import HardlinkHolds
from podferry.sidecar.checkpoint.upload.uploader import Uploader
from podferry.sidecar.state.durations import Durations
from podferry.sidecar.state.journal import Journal
from podferry.sidecar.state.upload_counters import UploadCounters


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The components; `gang` is None if one pod writes all, `retention` is None if all commits are kept."""

    detector: Detector
    holds: HardlinkHolds
    uploader: Uploader
    committer: Committer
    journal: Journal
    durations: Durations
    counters: UploadCounters
    gang: GangCoordinator | None = None
    retention: Retention | None = None
