"""Counts the bytes that a worker sends, part by part, and strikes at a chosen moment of them."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote

from faults.messages import Head
from faults.moments import ANSWER, DATA, REQUEST, SAVE, Kill
from faults.rules import PRIVATE
from faults.wire import Seen

COMMITS = "/.podferry/commits/"
Key = tuple[str, int]
"""An object's path and the number of a part of it; 0 for one that goes in a single request."""


@dataclass(slots=True)
class Transfer:
    """A body of data on its way. Objects are named by content: what comes twice under a key is the same.

    Attributes:
        key: What it is.
        epoch: How many workers had been killed when it began.
        bytes: That have come.
        done: Whether the store has confirmed it.
    """

    key: Key
    epoch: int
    bytes: int = 0
    done: bool = False


@dataclass(slots=True)
class Again:
    """What was sent again because of one kill.

    Attributes:
        parts: How many, those of small files not included.
        bytes: Of them.
        small: Bytes of files that go in one request.
    """

    parts: int = 0
    bytes: int = 0
    small: int = 0


def sent_again(transfers: Iterable[Transfer]) -> dict[int, Again]:
    """What was sent more than once, by the number of the kill that had cut it off before, from 1.

    What a worker had on its way when it was killed may be read after that, and counts as of the next one's
    life. What was sent twice before the first kill is under 0: no kill was the reason.

    Args:
        transfers: In the order in which they began.
    """
    before: dict[Key, int] = {}
    found: dict[int, Again] = defaultdict(Again)
    for transfer in transfers:
        epoch = before.get(transfer.key)
        if epoch is not None:
            again = found[min(epoch + 1, transfer.epoch)]
            if transfer.key[1]:
                again.parts += 1
                again.bytes += transfer.bytes
            else:
                again.small += transfer.bytes
        before[transfer.key] = transfer.epoch
    return dict(found)


def data_key(request: Head) -> Key | None:
    """The data that a request sends, or None for requests without data and the agent's own documents."""
    path, _, query = request.target.partition("?")
    if request.method != "PUT" or PRIVATE.search(path) or not request.length:
        return None
    number = parse_qs(query).get("partNumber", ["0"])[0]
    return unquote(path), int(number)


@dataclass(slots=True)
class _Armed:
    kill: Kill
    left: float
    fired: threading.Event = field(default_factory=threading.Event)


class Counter:
    """Sees all that passes; two threads share it, the proxy's and the one that saves.

    Args:
        strike: Kills the worker; whether there was one.

    Attributes:
        epoch: Workers killed so far.
        transfers: In the order in which they began.
        commits: How many the store has confirmed.
        saved: Bytes of all checkpoints that were saved.
    """

    def __init__(self, strike: Callable[[], bool]) -> None:
        self._strike = strike
        self._armed: _Armed | None = None
        self._lock = threading.RLock()
        self.epoch = self.commits = self.saved = 0
        self.transfers: list[Transfer] = []

    def __call__(self, request: Head) -> Seen:
        """See a request."""
        return _Counted(request, self)

    def left(self) -> int:
        """Bytes that are still to be sent."""
        with self._lock:
            done = {transfer.key: transfer.bytes for transfer in self.transfers if transfer.done}
        return max(self.saved - sum(done.values()), 0)

    def open(self) -> int:
        """Transfers under way of the worker that lives."""
        with self._lock:
            return sum(not transfer.done and transfer.epoch == self.epoch for transfer in self.transfers)

    def arm(self, kill: Kill) -> threading.Event:
        """Strike at that moment; the event is set when it was done."""
        left = {DATA: kill.share * self.left(), SAVE: time.monotonic() + kill.seconds}
        with self._lock:
            self._armed = _Armed(kill, left.get(kill.kind, float(kill.request)))
            return self._armed.fired

    def tick(self, now: float) -> None:
        """Strike where a time has come."""
        with self._lock:
            if self._armed is not None and self._armed.kill.kind == SAVE and now >= self._armed.left:
                self._fire(self._armed)

    def note(self, kind: str, count: int, epoch: int) -> None:
        """So many bytes, requests or answers more; those of a worker that is dead are no moment."""
        with self._lock:
            armed = self._armed
            if armed is None or armed.kill.kind != kind or epoch != self.epoch:
                return
            armed.left -= count
            if armed.left <= 0:
                self._fire(armed)

    def began(self, key: Key) -> Transfer:
        """A transfer begins."""
        with self._lock:
            self.transfers.append(Transfer(key, self.epoch))
            return self.transfers[-1]

    def _fire(self, armed: _Armed) -> None:
        if self._strike():
            self.epoch += 1
            self._armed = None
            armed.fired.set()


class _Counted(Seen):
    """One request, counted."""

    def __init__(self, request: Head, counter: Counter) -> None:
        super().__init__(request)
        self._counter, self._epoch = counter, counter.epoch
        key = data_key(request)
        self._transfer = None if key is None else counter.began(key)
        counter.note(REQUEST, 1, self._epoch)

    def passed(self, count: int) -> None:
        if self._transfer is not None:
            self._transfer.bytes += count
            self._counter.note(DATA, count, self._epoch)

    def answered(self, answer: Head) -> None:
        if answer.first[1].startswith("2"):
            if self._transfer is not None:
                self._transfer.done = True
            if self.request.method == "PUT" and COMMITS in self.request.target:
                self._counter.commits += 1
            self._counter.note(ANSWER, 1, self._epoch)
