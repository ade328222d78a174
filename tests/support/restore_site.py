"""A commit in a memory store, and an interrupted download of it."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import msgspec
import pytest
import xxhash

from podferry.contract.destination.commit import FORMAT, Commit, CommittedFile
from podferry.contract.errors import Unavailable
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.restore.downloader import CommitDownloader
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.storage.memory.store import Fault

RANGE = 1000
SMALL = PrefetchSettings(in_flight=8, range_bytes=RANGE, buffer_bytes=4 * RANGE, attempts=2)
FILES = {"e/empty": b"", "e/one": b"1", "e/d/many": os.urandom(9 * RANGE + 13), "latest": b"e"}
COMMIT = Commit(FORMAT, 1, "run", "e-1", "e", None, datetime(2026, 1, 1, tzinfo=UTC), (), "w")


def listed(name, data, rank=None):
    return CommittedFile(name, f"e-1/{rank or 0}/{name}", len(data), xxhash.xxh3_128_hexdigest(data), rank)


def held(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


async def interrupted(store, commit, directories):
    """A call that fails once two files are complete in the staging directory; returns its error."""
    down = Fault("read", "*latest", times=99, error=Unavailable.of("no route"))
    store.faults.append(down)
    one_by_one = msgspec.structs.replace(SMALL, in_flight=1)
    with pytest.raises(Unavailable):
        await CommitDownloader(LineageStore(store, "run"), settings=one_by_one).download(commit, *directories)
    return down
