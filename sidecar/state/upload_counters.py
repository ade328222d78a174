"""Counters of uploads."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

Clock = Callable[[], float]
"""Monotonic seconds."""


@dataclass(slots=True)
class UploadCounters:
    """Bytes that uploads have moved; may be read at any time.

    `sent` includes bytes sent again; an earlier commit has the `referenced` bytes, which are not sent; `rate`
    is in bytes per second, of the current or last upload.
    """

    sent: int = 0
    referenced: int = 0
    rate: float = 0.0
    clock: Clock = time.monotonic
    _started_at: float = field(default=0.0, repr=False)
    _sent_at_start: int = field(default=0, repr=False)

    def begin(self) -> None:
        """Start to measure the rate of an upload."""
        self._started_at, self._sent_at_start = self.clock(), self.sent

    def add(self, count: int) -> None:
        """Count bytes that the store has received."""
        self.sent += count
        seconds = self.clock() - self._started_at
        if seconds > 0:
            self.rate = (self.sent - self._sent_at_start) / seconds
