"""Settles the doubts of a commit: adds an object, and changes none.

Anyone may confirm, next to a live agent: a confirmation is neither a commit nor an announcement, so no agent
is fenced by it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from podferry.contract.destination.confidence import FORMAT, Confirmation, Confirmer, confirmation_name
from podferry.contract.errors import AlreadyExists
from podferry.contract.versioned_json import encode_checksummed
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.storage.store import WriteMode


def utc_now() -> datetime:
    """The time by this machine's clock."""
    return datetime.now(UTC)


class Confirmable(Protocol):
    """What identifies a commit."""

    @property
    def sequence(self) -> int:
        """Its number."""

    @property
    def checkpoint(self) -> str:
        """The folder of its data."""


async def confirm(
    store: LineageStore,
    commit: Confirmable,
    by: Confirmer,
    reason: str,
    rank: int | None = None,
    now: Callable[[], datetime] = utc_now,
) -> None:
    """Confirm that a commit's checkpoint is complete. A second confirmation is harmless: the first one stays.

    Args:
        store: The commit's lineage.
        commit: Which one.
        by: Who confirms.
        reason: What proves it, for people.
        rank: The rank whose part is confirmed; None for the entire commit.
        now: The confirmer's clock, with its zone.

    Raises:
        FerryError: The store's. Calling it again is harmless.
    """
    made = Confirmation(FORMAT, commit.sequence, commit.checkpoint, by, reason, now(), rank)
    name = confirmation_name(commit.sequence, rank)
    try:
        await store.write(name, encode_checksummed(made), WriteMode.CREATE)
    except AlreadyExists:
        return
