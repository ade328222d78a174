"""The start of an agent in a lineage of 10,000 commits: few requests, and few of them one after the other."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from podferry.contract.destination.commit import Confidence, Doubt, DoubtKind, commit_name, encode_commit
from podferry.contract.spec import CheckpointSpec, FerrySpec
from podferry.contract.status import Status
from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.pipeline.checkpoint_job import CheckpointJob
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.config.directories import Directories
from podferry.sidecar.state.agent_state import AgentState
from podferry.sidecar.state.journal import Journal
from podferry.storage.memory.store import CONTENTS, Content, MemoryStore
from tests.support.lineage_site import Lineage

COMMITS = 10_000
DOUBTFUL = 3
"""The newest ones: `auto` passes them over."""
DOUBT = Doubt(DoubtKind.UNPROVEN, "its end is not proven")
ROUNDS = 6
"""Requests before the decision that wait for each other; today's number, so that one more is noticed."""


@pytest.fixture(scope="module")
def objects():
    """A lineage of many commits; all refer to one object."""
    site = Lineage(MemoryStore(parse_uri("memory://many/base"), Content()))
    made = site.put(1, "model.pt")
    for sequence in range(1, COMMITS + 1):
        name, doubtful = f"step-{sequence}", sequence > COMMITS - DOUBTFUL
        commit = msgspec.structs.replace(made, sequence=sequence, name=name, checkpoint=f"{name}-0")
        if doubtful:
            commit = msgspec.structs.replace(commit, confidence=Confidence.DOUBTFUL, doubts=(DOUBT,))
        site.objects[f"base/run/{commit_name(sequence)}"] = encode_commit(commit)
    return site.objects


class Rounds(Content):
    """Counts requests, and how many rounds of parallel ones there are."""

    def __init__(self, objects):
        super().__init__()
        self.objects = dict(objects)
        self.rounds, self.decided, self._waiting = 0, False, []

    async def meet(self, call, name):
        self.decided |= call == "stat"  # of the data to restore
        event = asyncio.Event()
        self._waiting.append(event)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().create_task(self._answer())
        await event.wait()
        return await super().meet(call, name)

    async def _answer(self):
        """Answer all requests that are made until nothing else can run."""
        count = 0
        while count != len(self._waiting):
            count = len(self._waiting)
            for _ in range(20):
                await asyncio.sleep(0)
        self.rounds += not self.decided
        waiting, self._waiting = self._waiting, []
        for event in waiting:
            event.set()


@pytest.fixture
def job(objects, tmp_path, monkeypatch):
    async def at_once(work, *given, **named):
        return work(*given, **named)

    monkeypatch.setattr(asyncio, "to_thread", at_once)  # else the order of requests would depend on the load
    content = Rounds(objects)
    monkeypatch.setitem(CONTENTS, "many", content)
    (tmp_path / "files").mkdir()

    def make(**changes):
        spec = msgspec.structs.replace(CheckpointSpec("memory://many/base", "/seen"), **changes)
        directories = Directories(
            tmp_path / "control", checkpoints=tmp_path / "files", holds=tmp_path / "pins"
        )
        config = AgentConfig(FerrySpec(checkpoints=spec, lineage="run"), directories)
        return CheckpointJob(spec, config, Journal(tmp_path / "control"), AgentState(Status())), content

    return make


@pytest.mark.parametrize(
    ("setting", "found"),
    [("auto", COMMITS - DOUBTFUL), ("latest", COMMITS), ("memory://many/base/run", COMMITS - DOUBTFUL)],
)
async def test_the_start_reads_the_newest_commits_only(job, setting, found):
    work, content = job(restore=setting)
    await work.restore(await work.plan())
    assert work.restored.sequence == found
    reads = [name for call, name in content.calls if call == "read" and "/commits/" in name]
    assert len(reads) == len(set(reads)) <= 8, "each once"
    listings = [name for call, name in content.calls if call == "children" and name.endswith("/commits")]
    assert len(listings) == (3 if setting.startswith("memory:") else 2)
    assert len(content.calls) <= 20
    assert content.rounds <= ROUNDS
