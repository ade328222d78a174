"""Fetches a dataset and reads its stage."""

from __future__ import annotations

import itertools
from contextlib import contextmanager

from podferry.contract.uri import parse_uri
from podferry.storage.memory.store import CONTENTS, Content

COUNTER = itertools.count()
FILES = {"d/a/1": b"one", "d/a/2": b"two", "d/b": b""}


@contextmanager
def memory_dataset(objects):
    """A dataset in memory, below `d`, while the block runs."""
    name = f"dataset-{next(COUNTER)}"
    made = CONTENTS[name] = Content()
    made.objects.update(objects)
    made.uri = parse_uri(f"memory://{name}/d")
    yield made
    del CONTENTS[name]


async def fetch(job):
    await (await job.plan()).fetch()
    return job.status


def held(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }
