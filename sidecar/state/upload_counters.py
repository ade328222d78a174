"""What uploads count."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

Clock = Callable[[], float]
"""Seconds, never going back."""


@dataclass(slots=True)
class UploadCounters:
    """What uploads have moved; the values may be read at any time.

    Attributes:
        sent: Bytes sent, those that were sent again included.
        referenced: Bytes not sent, since an earlier commit has them.
        rate: Bytes a second of the upload in progress, or of the last one.
        clock: For tests.
    """

    sent: int = 0
    referenced: int = 0
    rate: float = 0.0
    clock: Clock = time.monotonic
    _since: float = field(default=0.0, repr=False)
    _before: int = field(default=0, repr=False)

    def begin(self) -> None:
        """An upload begins."""
        self._since, self._before = self.clock(), self.sent

    def add(self, count: int) -> None:
        """So many bytes have arrived."""
        self.sent += count
        seconds = self.clock() - self._since
        if seconds > 0:
            self.rate = (self.sent - self._before) / seconds
