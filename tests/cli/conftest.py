"""Shared by the verbs' tests: calling `podferry` in this process, golden outputs, stores in memory."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
import xxhash

from podferry.cli.main import main
from podferry.contract.destination.commit import (
    DOUBTFUL_FORMAT,
    FORMAT,
    Commit,
    CommittedFile,
    Confidence,
    Doubt,
    DoubtKind,
    checkpoint_folder,
    commit_name,
    encode_commit,
    step_of,
)
from podferry.contract.uri import Uri, parse_uri
from podferry.storage.factory import open_store
from podferry.storage.memory.store import CONTENTS, Content

GOLDEN = Path(__file__).parent / "golden"
REFRESH = "REFRESH_GOLDEN"
"""Set it to write the golden outputs again; review the difference before you commit it."""
COUNTER = itertools.count()
USED: set[str] = set()


class Output(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def podferry(capsys) -> Callable[..., Output]:
    """Calls the command in this process."""

    def call(*words: object) -> Output:
        capsys.readouterr()
        code = main([str(word) for word in words])
        return Output(code, *capsys.readouterr())

    return call


@pytest.fixture(scope="session")
def golden() -> Callable[[str, str], None]:
    """Compares a text with the golden one of that name."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / f"{name}.txt"
        if os.environ.get(REFRESH):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        assert text == path.read_text(), f"{path.name} is stale: see {REFRESH} in conftest.py"

    return compare


@pytest.fixture
def digits() -> Iterator[Uri]:
    """A dataset in memory."""
    content = CONTENTS["digits"] = Content()
    files = {"train/a.png": 5000, "train/b.png": 70_000, "test/c.png": 12, "labels.csv": 300}
    content.objects.update({f"v1/{name}": b"\1" * size for name, size in files.items()})
    yield parse_uri("memory://digits/v1")
    del CONTENTS["digits"]


class Destination:
    """Checkpoints in a store, as an agent would have committed them."""

    def __init__(self, uri: Uri) -> None:
        self.uri = uri
        self.sequences: dict[str, int] = {}

    def commit(
        self, lineage: str, files: dict[str, bytes], created: datetime, name: str, doubt: str = ""
    ) -> Commit:
        """Write the files of a checkpoint, and their commit; it is doubtful if there is a doubt."""
        sequence = self.sequences[lineage] = self.sequences.get(lineage, 0) + 1
        sums = {file: xxhash.xxh3_128_hexdigest(data) for file, data in files.items()}
        folder = checkpoint_folder(name, [(file, len(files[file]), digest) for file, digest in sums.items()])
        held = tuple(
            CommittedFile(file, f"{folder}/{file}", len(files[file]), sums[file]) for file in sorted(files)
        )
        commit = Commit(
            DOUBTFUL_FORMAT if doubt else FORMAT,
            sequence,
            lineage,
            folder,
            name,
            step_of(name),
            created,
            held,
            "writer-1",
            run="run-7",
            confidence=Confidence.DOUBTFUL if doubt else Confidence.SURE,
            doubts=(Doubt(DoubtKind.UNPROVEN, doubt),) if doubt else (),
        )
        for file in held:
            self.write(f"{lineage}/{file.object}", files[file.name])
        self.write(f"{lineage}/{commit_name(sequence)}", encode_commit(commit))
        return commit

    def doubtful(self, name: str = "step-300", lineage: str = "team.job.fit") -> Commit:
        """Commit a newest checkpoint that is doubtful."""
        files = {f"{name}.pt": b"c" * 3000}
        return self.commit(lineage, files, datetime.now(UTC), name, "nothing shows where its file ends")

    def commit_gang(self, *ranks: int) -> None:
        """Commit a checkpoint in which each rank has its own `state.bin`."""
        commit = self.commit(
            "team.job.gang", {"s/all.bin": b"shared"}, datetime.now(UTC) - timedelta(hours=3), "s-9"
        )
        files = [*commit.files]
        for rank in ranks:
            data, place = b"of %d" % rank, f"{commit.checkpoint}/{rank}/state.bin"
            self.write(f"team.job.gang/{place}", data)
            digest = xxhash.xxh3_128_hexdigest(data)
            files.append(CommittedFile("s/state.bin", place, len(data), digest, rank))
        ranked = msgspec.structs.replace(commit, files=tuple(files), world=len(ranks))
        self.write(f"team.job.gang/{commit_name(1)}", encode_commit(ranked))

    def write(self, name: str, data: bytes) -> None:
        asyncio.run(open_store(self.uri).write(name, data))

    def delete(self, name: str) -> None:
        asyncio.run(open_store(self.uri).delete([name]))


@pytest.fixture
def destination() -> Iterator[Destination]:
    """Two lineages, the first with two commits, in a store in memory."""
    bucket = f"ck-{next(COUNTER)}"
    CONTENTS[bucket] = Content()
    made = Destination(parse_uri(f"memory://{bucket}/team"))
    now = datetime.now(UTC)
    made.commit("team.job.fit", {"step-100.pt": b"a" * 3000}, now - timedelta(hours=5), "step-100")
    made.commit("team.job.fit", {"step-200.pt": b"b" * 3000}, now - timedelta(hours=3), "step-200")
    files = {"epoch-7/model.bin": b"m" * 70_000, "epoch-7/optimizer.bin": b"o" * 1000}
    made.commit("team.job.tune", files, now - timedelta(days=40), "epoch-7")
    yield made
    del CONTENTS[bucket]
