"""When one way of training has caught up with another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count

FAR = 1000
"""Epochs after which nobody waits for a break-even any more."""


def ends_of(epochs: Sequence[Mapping[str, float]]) -> list[float]:
    """Seconds from the start of all until each epoch's end."""
    return [epoch["ended"] for epoch in epochs]


def ends_after(ends: Sequence[float], epochs: int) -> float:
    """Seconds until so many epochs are over; those that were not measured take as long as the last one."""
    if epochs <= len(ends):
        return ends[epochs - 1]
    last = ends[-1] - (ends[-2] if len(ends) > 1 else 0.0)
    return ends[-1] + (epochs - len(ends)) * last


def break_even(ours: Sequence[float], theirs: Sequence[float]) -> int | None:
    """The first epoch after which ours is not behind any more, None where it never catches up.

    Args:
        ours: Seconds from the start of all until each epoch's end.
        theirs: The same of another way.
    """
    reached = (n for n in count(1) if n > FAR or ends_after(ours, n) <= ends_after(theirs, n))
    found = next(reached)
    return found if found <= FAR else None
