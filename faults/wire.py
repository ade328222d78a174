"""Who is shown what passes the proxy: by default nobody."""

from __future__ import annotations

from collections.abc import Callable

from faults.messages import Head


class Seen:
    """One request. Its methods are called in the proxy's thread, before what they tell goes on.

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
