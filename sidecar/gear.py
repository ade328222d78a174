"""What a checkpoint ferry works with."""

from __future__ import annotations

from dataclasses import dataclass

from podferry.sidecar.committer import Committer
from podferry.sidecar.detector import Detector
from podferry.sidecar.gang import Gang
from podferry.sidecar.journal import Journal
from podferry.sidecar.pin import Pins
from podferry.sidecar.remote import Retention
from podferry.sidecar.throttle import Meter
from podferry.sidecar.timings import Timings
from podferry.sidecar.upload import Uploader


@dataclass(frozen=True, slots=True)
class Gear:
    """What finds, holds, sends, commits, remembers and counts.

    Attributes:
        gang: Joins the parts of several ranks, None where one pod writes all.
        retention: Removes old commits, None where all are kept.
    """

    detector: Detector
    pins: Pins
    uploader: Uploader
    committer: Committer
    journal: Journal
    timings: Timings
    meter: Meter
    gang: Gang | None = None
    retention: Retention | None = None
