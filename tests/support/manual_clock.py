"""A clock that tests move."""

from __future__ import annotations


class Clock:
    """A clock that advances only while a task sleeps, or by `now`."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        self.now += seconds
