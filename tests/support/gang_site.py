"""A lineage that several ranks write to, with a clock that the test moves."""

from __future__ import annotations

from datetime import UTC, datetime

from podferry.contract.destination.commit import CommittedFile, decode_commit
from podferry.contract.errors import Unavailable
from podferry.sidecar.checkpoint.commit.agent_identity import AgentIdentity
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.committer import Committer
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.gang.coordinator import GangCoordinator

LOST = Unavailable.of("the connection was reset")
BEFORE = 500.0
"""A time before any agent has seen an epoch."""


def file(name, content, folder):
    return CommittedFile(name, f"{folder}/{name}", len(content), content.ljust(32, "0"))


def committer(site, rank, writer, world=2):
    reader = CommitReader(LineageStore(site.store, "run"))
    identity = AgentIdentity(writer, world, rank=rank)
    return Committer(reader, identity, lambda: datetime.fromtimestamp(site.time, UTC), 2)


def quiet(site, rank, writer=None, world=2):
    """An agent that has not announced itself."""
    return GangCoordinator(committer(site, rank, writer or f"w{rank}", world), lambda: site.time)


async def join(site, rank, writer=None, world=2):
    gang = quiet(site, rank, writer, world)
    await gang.announce()
    return gang


async def joined_gang(site, world=2):
    """Agents that have all seen each other, some time ago."""
    gangs = [await join(site, rank, world=world) for rank in range(world)]
    for gang in gangs:
        await gang.membership.refresh()
    site.time += 10
    return gangs


async def publish(site, gang, step, content, *more, when=None):
    """Publish a rank's part: a file of its own and more, in its own folder unless they name one."""
    folder = f"own-{gang._rank}"
    held = [file(*one, folder) if isinstance(one, tuple) else one for one in more]
    files = (file(f"rank-{gang._rank}", content, folder), *held)
    await gang.publish(f"step-{step}", folder, files, site.time if when is None else when)


def commits(site):
    keys = sorted(key for key in site.content.objects if "/commits/" in key)
    return [decode_commit(site.content.objects[key], key) for key in keys]


def steps(site):
    return [commit.step for commit in commits(site)]


def parts(site):
    return sorted(key for key in site.content.objects if "/parts/" in key)
