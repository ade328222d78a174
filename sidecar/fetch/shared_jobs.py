"""Jobs that several processes share, so that each writes to files of its own for as long as possible."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedJobs(Generic[T]):
    """Jobs in groups: the ranges of one file are a group.

    The kernel lets one process at a time write to a file, and the others spin: two processes that fetched the
    same file lost a tenth of their processor time.

    Args:
        groups: Each is opened when a taker needs one.
    """

    def __init__(self, groups: Iterator[Iterator[T]]) -> None:
        self._groups = groups
        self._open: list[Iterator[T]] = []

    def take(self) -> Iterator[T]:
        """Jobs for one taker: of groups of its own, then of those that others have not finished."""
        while (group := self._next_group()) is not None:
            for job in group:  # noqa: UP028 - `yield from` would close the group of a taker that gives up
                yield job
            if group in self._open:
                self._open.remove(group)

    def _next_group(self) -> Iterator[T] | None:
        group = next(self._groups, None)
        if group is not None:
            self._open.append(group)
        return group if group is not None else next(reversed(self._open), None)
