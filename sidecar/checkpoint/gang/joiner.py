"""Joins the parts of all ranks into one commit."""

from __future__ import annotations

from collections.abc import Mapping

import structlog

from podferry.contract.destination.commit import Commit
from podferry.contract.destination.rank_parts import (
    RankPart,
    epoch_of,
    joined_doubts,
    joined_files,
    joined_folder,
)
from podferry.contract.errors import FerryError, Superseded
from podferry.sidecar.checkpoint.commit.committer import Committer
from podferry.sidecar.checkpoint.gang.join_rules import contains, newer
from podferry.sidecar.checkpoint.gang.membership import Membership
from podferry.sidecar.checkpoint.gang.part_registry import PartRegistry

log = structlog.get_logger(__name__)

RESTARTED = "a rank has restarted since it was written"


class PartJoiner:
    """Commits the parts of all ranks of a lineage."""

    def __init__(self, committer: Committer, parts: PartRegistry, membership: Membership) -> None:
        self._committer, self._parts, self._membership = committer, parts, membership

    async def commit(self, name: str, parts: Mapping[int, RankPart], epoch: str) -> Commit | None:
        """Commit the parts of all ranks; None if it is too late for them.

        Read the parts before calling this: it reads the names of the members (see `coordinator.py`).
        """
        ordered = [parts[rank] for rank in range(self._committer.identity.world)]
        files, base = joined_files(ordered), min(part.base for part in ordered)

        async def check() -> None:
            await self._committer.log.refresh(base)
            if later := newer(self._committer.log.known, name, base):
                raise Superseded.of(f"{name} is not committed", f"{later.name} is already durable")
            if epoch_of(await self._membership.names()) != epoch:
                raise Superseded.of(f"{name} is not committed", RESTARTED)

        try:
            folder, doubts = joined_folder(name, files), joined_doubts(ordered)
            commit = await self._committer.commit(name, folder, files, doubts=doubts, check=check)
        except Superseded as error:
            log.info("the parts of all ranks came too late", name=name, reason=str(error))
            return None
        try:
            await self._parts.sweep(commit)
        except FerryError as error:
            log.warning("parts that are no longer needed were not removed", reason=str(error))
        return commit

    async def commit_of(self, part: RankPart) -> Commit | None:
        """The commit that contains a part, or None."""
        for number, known in sorted(self._committer.log.known.items(), reverse=True):
            if known.name == part.name and number > part.base:
                commit = await self._committer.log.read(number)
                if commit is not None and contains(commit, part):
                    return commit
        return None
