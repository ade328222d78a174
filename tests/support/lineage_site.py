"""A lineage in a memory store, written object by object."""

from __future__ import annotations

from datetime import UTC, datetime

import xxhash

from podferry.contract.destination.commit import (
    DOUBTFUL_FORMAT,
    FORMAT,
    Commit,
    CommittedFile,
    Confidence,
    Doubt,
    DoubtKind,
    commit_name,
    decode_commit,
    encode_commit,
)
from podferry.contract.errors import Unavailable
from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.garbage_collector import GarbageCollector
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.storage.memory.store import Content, MemoryStore

WHEN = datetime(2026, 1, 1, tzinfo=UTC)
LOST = Unavailable.of("the connection was reset")


class Death(BaseException):
    """Ends a process as a kill does."""


class Lineage:
    """A lineage `run` in a store of its own."""

    def __init__(self, store=None):
        self.store = store or MemoryStore(parse_uri("memory://remote/base"), Content())
        self.reader = CommitReader(LineageStore(self.store, "run"))
        self.objects = self.store.content.objects
        self.faults = self.store.faults
        self.abandoned: set[str] = set()

    def put(self, sequence, *objects, name=None, doubt="", confidence=Confidence.SURE, late=False):
        """Write a commit of these objects, and the objects that are missing; doubtful if there is a doubt.

        Without a confidence it is one of podferry 0.1.
        """
        files = []
        for text in objects:
            data = self.objects.setdefault(f"base/run/{text}", text.encode())
            files.append(CommittedFile(text, text, len(data), xxhash.xxh3_128_hexdigest(data)))
        name = name or f"s{sequence}"
        doubts = (Doubt(DoubtKind.UNPROVEN, doubt),) if doubt else ()
        made = Commit(
            DOUBTFUL_FORMAT if doubt else FORMAT,
            sequence,
            "run",
            f"{name}-00",
            name,
            None,
            WHEN,
            tuple(files),
            "w",
            confidence=Confidence.DOUBTFUL if doubt else confidence,
            doubts=doubts,
            late=late,
        )
        self.objects[f"base/run/{commit_name(sequence)}"] = encode_commit(made)
        return made

    def collector(self):
        return GarbageCollector(self.reader)

    @property
    def names(self):
        return {key.removeprefix("base/run/") for key in self.objects}

    @property
    def data(self):
        return {name for name in self.names if not name.startswith(".podferry/")}

    @property
    def sequences(self):
        return [int(name[-17:-5]) for name in sorted(self.names) if "/commits/" in name]

    def commits(self):
        return [decode_commit(data, key) for key, data in self.objects.items() if "/commits/" in key]

    def deleted(self):
        return [name.removeprefix("run/") for call, name in self.store.content.calls if call == "delete"]


CALLS = [("write", n) for n in range(3)] + [("delete", n) for n in range(10)]
"""A removal makes at most two writes and nine deletes: the last index of each kind is never reached."""


KILLS = [(call, skip, after) for call, skip in CALLS for after in (False, True)]
