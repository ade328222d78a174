"""Fetches a dataset and reads its stage."""

from __future__ import annotations

import itertools

COUNTER = itertools.count()
FILES = {"d/a/1": b"one", "d/a/2": b"two", "d/b": b""}


async def fetch(job):
    await (await job.plan()).fetch()
    return job.status


def held(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }
