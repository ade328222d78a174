"""Observers of what passes through the proxy; none by default."""

from __future__ import annotations

from collections.abc import Callable

from faults.messages import Head


class Seen:
    """One request. Its methods are called in the proxy's thread, before the message is passed on.

    Args:
        request: Has come, and was not passed on yet.
    """

    def __init__(self, request: Head) -> None:
        self.request = request

    def passed(self, count: int) -> None:
        """So many bytes more of its body have come."""

    def answered(self, answer: Head) -> None:
        """The store has answered; nobody has heard of it yet."""


Watch = Callable[[Head], Seen]
