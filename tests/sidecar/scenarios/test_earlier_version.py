"""This version reads what podferry 0.1.0 wrote: a destination, and the directories of a killed agent.

`tests/data/written-by-0.1.0.tar.gz` holds, as that version left them:

    destination/           two commits of a first agent, one of a second, and the second's upload in progress
    outputs-destination/   uploaded outputs with their record
    agent/                 the second agent's journal, upload journal, hold notes, ownership record and stage;
                           it was killed with SIGKILL after its gate had opened
    prefetch/              a staging directory with 6 of 10 ranges of a large file

Directories are replaced by `@BASE@` and the boot by `@BOOT@`. The files' identities (inode, size,
modification time) are replaced here.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from podferry.contract.manifest import Entry, Manifest
from podferry.contract.spec import CheckpointSpec, DatasetSpec, FerrySpec, OutputSpec
from podferry.contract.spec_json import encode_spec
from podferry.contract.uri import parse_uri
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.fetcher import Fetcher
from podferry.sidecar.fetch.plan import plan_fetch
from podferry.sidecar.fetch.source import FetchSource
from podferry.sidecar.staging.ownership_record import boot_id
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.storage.memory.store import Content, MemoryStore
from tests.support.patience import PATIENCE
from tests.support.reserved_port import reserved_port

WRITTEN = Path(__file__).parents[2] / "data" / "written-by-0.1.0.tar.gz"
LINEAGE = "golden.run"
HEADER = b'{"t":{"dtype":"U8","shape":[41943040],"data_offsets":[0,41943040]}}'
UNFINISHED = len(HEADER).to_bytes(8, "little") + HEADER + bytes(40 << 20)
"""The checkpoint whose upload was in progress."""
PARTS, SENT = 41, 1
"""Of 1 MiB each: what its upload needs, and what the first agent had sent."""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """The directories as they were when that agent was killed."""
    with tarfile.open(WRITTEN) as archive:
        archive.extractall(tmp_path, filter="data")
    agent = tmp_path / "agent"
    large = agent / "checkpoints" / "last.safetensors"
    large.write_bytes(UNFINISHED)
    held = agent / "pins" / "2" / "files" / "last.safetensors"
    held.parent.mkdir(parents=True)
    held.hardlink_to(large)
    identities = {
        path.relative_to(agent / "checkpoints").as_posix(): identity(path)
        for path in (agent / "checkpoints").rglob("*")
        if path.is_file()
    }
    for document in ("control/journal.json", "control/uploads/2.jsonl", "pins-notes/2.json"):
        path = agent / document
        text = path.read_text().replace("@BASE@", str(tmp_path))
        path.write_text(with_identities(text, identities))
    return tmp_path


def identity(path: Path) -> str:
    status = path.stat()
    return f"[{status.st_ino},{status.st_size},{status.st_mtime_ns}]"


def with_identities(text: str, identities: dict[str, str]) -> str:
    for name, found in identities.items():
        text = re.sub(rf'("{re.escape(name)}",(?:"identity":)?)\[\d+,\d+,\d+\]', rf"\g<1>{found}", text)
    return text


@contextmanager
def agent(base: Path) -> Iterator[str]:
    """An agent of this version in the place of the one that was killed; its URL."""
    here = base / "agent"
    spec = FerrySpec(
        datasets=(DatasetSpec(f"file://{base}/nowhere", str(here / "stage")),),
        checkpoints=CheckpointSpec(f"file://{base}/destination", str(here / "checkpoints")),
        outputs=OutputSpec(f"file://{base}/outputs-destination", str(here / "outputs")),
        lineage=LINEAGE,
    )
    directories = {
        "control": "control", "dataset": "stage", "claim": "claims", "checkpoint": "checkpoints", "pins":
        "pins",
        "output": "outputs",
    }  # fmt: skip
    flags = [f"--{option}-dir={here / folder}" for option, folder in directories.items()]
    command = [
        sys.executable,
        "-m",
        "podferry.cli.main",
        "agent",
        "--spec",
        encode_spec(spec).decode(),
        *flags,
    ]
    with reserved_port() as port:
        process = subprocess.Popen([*command, "--port", str(port)], start_new_session=True)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            assert process.wait(PATIENCE) == 0


def asked(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:  # noqa: S310 - loopback
        found: dict[str, Any] = json.load(answer)
    return found


def until(found: Any, good: Any) -> Any:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            answer = found()
            if good(answer):
                return answer
        except OSError:
            answer = None  # it does not listen yet
        assert time.monotonic() < end, answer
        time.sleep(0.05)  # an agent of its own: there is no event to wait for


def test_an_agent_continues_where_the_earlier_one_was_killed(base: Path) -> None:
    (base / "agent" / "outputs").mkdir(exist_ok=True)
    with agent(base) as url:
        gate = until(lambda: asked(f"{url}/v1/gate"), lambda gate: gate["open"])
        restored = f"{base}/agent/checkpoints/checkpoint-2"
        assert gate["environment"]["PODFERRY_RESTORED"] == restored, "the gate says again what it said"
        status = until(
            lambda: asked(f"{url}/v1/status"), lambda status: len(status["checkpoints"]["durable"]) == 2
        )
    assert status["starts"] == 2
    assert status["checkpoints"]["restored"]["sequence"] == 2
    durable = [(one["name"], one["sequence"]) for one in status["checkpoints"]["durable"]]
    assert durable == [("small-3", 3), ("last", 4)]
    assert status["checkpoints"]["uploaded_bytes"] == len(UNFINISHED) - (SENT << 20), "sent parts stay sent"
    assert {path.name for path in (base / "agent" / "stage").iterdir()} == {"a", "b.txt", "m1", "m2"}
    sent = base / "destination" / LINEAGE / "last-23a947130f63" / "last.safetensors"
    assert sent.read_bytes() == UNFINISHED


def podferry(*words: object) -> Any:
    command = [sys.executable, "-m", "podferry.cli.main", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if done.stdout.startswith(("{", "[")) else done.stdout


def test_its_commits_are_listed_verified_and_restored(base: Path) -> None:
    uri = f"file://{base}/destination"
    (listed,) = podferry("checkpoints", "ls", uri, LINEAGE, "-o", "json")
    assert [commit["name"] for commit in listed["commits"]] == ["small-3", "checkpoint-2", "checkpoint-1"]
    podferry("checkpoints", "verify", uri, LINEAGE, "--deep")
    podferry("checkpoints", "restore", uri, LINEAGE, "checkpoint-2", "--to", base / "back")
    restored = {path.relative_to(base / "back").as_posix() for path in (base / "back").rglob("*.bin")}
    assert restored == {"checkpoint-2/shared.bin", "checkpoint-2/weights.bin"}, "one is in the folder before"
    assert (base / "back" / "checkpoint-2" / "weights.bin").read_bytes() == b"2" * 500


STAGED = {"large.bin": bytes(number * 7 % 251 for number in range(10_000)), "small.bin": b"small"}
MANIFEST = Manifest(
    "file:///nowhere",
    "4c6160cb71b68d89548747d067bc1ddf017f00c088be9886953762f180a07db6",
    10_005,
    (
        Entry("large.bin", 10_000, "9862b8-18ea5410e61d95e6-2710"),
        Entry("small.bin", 5, "9862c4-18ea5410e61ed78d-5"),
    ),
)
"""The dataset of `prefetch/`, with the tags of that time."""


class Ranges(MemoryStore):
    """The dataset's store; notes what is read."""

    def __init__(self) -> None:
        super().__init__(parse_uri("memory://earlier/d"), Content())
        self.read_ranges: set[tuple[str, int, int]] = set()

    async def read(
        self,
        name: str,
        start: int = 0,
        length: int | None = None,
        tag: str = "",
        size: int | None = None,
    ) -> memoryview:
        assert length is not None
        self.read_ranges.add((name, start, length))
        return memoryview(STAGED[name][start : start + length])


@pytest.mark.parametrize("same_boot", [True, False])
async def test_its_partial_file_is_continued_unless_the_machine_has_started_again(
    base: Path, same_boot: bool
) -> None:
    ownership, root, store = base / "prefetch" / "claims", base / "prefetch" / "stage", Ranges()
    record = ownership / "claim"
    record.write_text(record.read_text().replace("@BOOT@", boot_id() if same_boot else "another"))
    stage = StagingDir(root, ownership)
    settings = PrefetchSettings(range_bytes=1000)
    try:
        plan = plan_fetch(MANIFEST, stage.claim(MANIFEST), settings)
        await Fetcher(plan, FetchSource(store), stage, settings).run()
    finally:
        stage.close()
    assert {path.name: path.read_bytes() for path in root.iterdir()} == STAGED
    missing = range(6000, 10_000, 1000) if same_boot else range(0, 10_000, 1000)
    expected = {("large.bin", start, 1000) for start in missing} | {("small.bin", 0, 5)}
    assert store.read_ranges == expected
