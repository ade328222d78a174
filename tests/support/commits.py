"""Commits of one file each."""

from __future__ import annotations

from datetime import UTC, datetime

import xxhash

from podferry.contract.destination.commit import CommittedFile
from podferry.contract.errors import Unavailable
from podferry.sidecar.checkpoint.commit.agent_identity import AgentIdentity
from podferry.sidecar.checkpoint.commit.commit_log import SequencePlace
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.committer import Committer
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore

LOST = Unavailable.of("the connection was reset")
COMMITS = "*/commits/*"


async def put(committer, number, content=b"1", check=None, **place):
    """Upload and commit one checkpoint of one file; `place` as in `SequencePlace`."""
    folder = f"e{number}-{content.hex()}"
    await committer.write(f"{folder}/w", content)
    file = CommittedFile("w", f"{folder}/w", len(content), xxhash.xxh3_128_hexdigest(content))
    return await committer.commit(f"e{number}", folder, (file,), place=SequencePlace(**place), check=check)


def ranked(rig, writer, rank):
    """A committer of a rank."""
    identity = AgentIdentity(writer, rank=rank)
    return Committer(CommitReader(LineageStore(rig.store, "run")), identity, lambda: datetime.now(UTC))


def numbers(rig):
    return [(commit.sequence, commit.name) for commit in rig.store.commits()]
