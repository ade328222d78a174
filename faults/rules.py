"""Which requests a fault of the store's hits."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from faults.lies import ANSWERS, REQUESTS, has_free_range
from faults.messages import Head
from faults.plan import Fault

COMMIT = re.compile(r"/\.podferry/(commits|parts)/")
PRIVATE = re.compile(r"/\.podferry/")
STATUS = {
    "500": (500, "InternalError"),
    "503": (503, "SlowDown"),
    "expired credentials": (403, "ExpiredToken"),
}
FLIPS = frozenset({"flipped request", "flipped answer"})
WRITING = frozenset({"reset in a request", "truncated request", "flipped request"})


def is_object(head: Head) -> bool:
    """Whether a request names an object rather than asks for a list: `/bucket/key`."""
    path = head.target.partition("?")[0]
    return path.count("/") > 1 and not path.endswith("/") and "list-type" not in head.target


def fits(fault: Fault, head: Head) -> bool:
    """Whether a fault may hit this request.

    A list has no checksum anywhere in S3's protocol, so nothing can detect bits flipped in one
    (TLS sees them): flips hit objects alone.
    """
    path = head.target.partition("?")[0]
    writes = head.method in {"PUT", "POST"}
    wanted = bool(COMMIT.search(path)) == fault.commits
    if fault.kind == "expired credentials":
        return True
    if fault.kind in REQUESTS or fault.kind in ANSWERS:
        return head.method == "GET" and (fault.kind in ANSWERS or has_free_range(head))
    if fault.kind == "flipped answer":
        held = wanted and (fault.commits or not PRIVATE.search(path))
        return head.method == "GET" and is_object(head) and held
    if fault.kind == "overwrite in place":
        return head.method == "PUT" and bool(head.length) and "/last" in path and not PRIVATE.search(path)
    if fault.kind in WRITING:
        # Flips in a completion's or a delete's list are left out as those in a list's answer are.
        return writes and bool(head.length) and wanted and (head.method == "PUT" or fault.kind not in FLIPS)
    return True if fault.pod or fault.kind == "truncated answer" else writes and wanted


@dataclass(slots=True)
class Armed:
    """A fault that waits for its request.

    Attributes:
        fault: Which.
        left: Requests that it may still hit.
        until: Moment of the monotonic clock after which it hits nothing.
    """

    fault: Fault
    left: int
    until: float


class Rules:
    """The faults that are armed. Two threads share it: the proxy's and the episode's.

    Args:
        rate: See the attribute.
        only: Which requests may be hit at all.

    Attributes:
        rate: Bytes a second, all connections together.
        hits: The faults that have hit something, each with how many requests.
    """

    def __init__(self, rate: int, only: Callable[[Head], bool] = lambda _: True) -> None:
        self.rate = rate
        self._only = only
        self.hits: Counter[Fault] = Counter()
        self._armed: list[Armed] = []
        self._lock = threading.Lock()

    def arm(self, fault: Fault, until: float) -> None:
        """Let a fault hit the next requests that fit, up to a moment of the monotonic clock."""
        with self._lock:
            self._armed.append(Armed(fault, fault.count, until))

    def clear(self) -> None:
        """Disarm all: the store is healthy from now on."""
        with self._lock:
            self._armed.clear()

    def hit(self, head: Head, now: float) -> Fault | None:
        """The fault that hits this request, if any; it is counted."""
        if not self._only(head):
            return None
        with self._lock:
            for armed in self._armed:
                if armed.left > 0 and now < armed.until and fits(armed.fault, head):
                    # Credentials are expired for every request of their time.
                    armed.left -= armed.fault.kind != "expired credentials"
                    self.hits[armed.fault] += 1
                    return armed.fault
        return None
