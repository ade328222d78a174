"""Which holder fetches which file from the source. Pure.

Each file has one owner among the holders that know of each other: the one with the highest hash of both names
(rendezvous hashing). All come to the same result without asking, and a holder that leaves changes nothing for
the files of the others. A file that another holder has, or has claimed, is taken from there, whoever owns it:
a holder that starts late fetches nothing twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from podferry.contract.manifest import Entry

MAX_FILES = 20_000
"""Of one step: some seconds of small files, after which the others know of them."""
MIN_BYTES = 256 << 20
"""Of one step, unless there is less: connections that open again cost little of it."""
STEPS = 4
"""Into which a dataset is cut at least: a holder that starts late finds files that nobody has claimed."""


class PeerView(msgspec.Struct):
    """What is known of another holder.

    Attributes:
        name: Its name.
        digest: Of its manifest; empty if it has none yet.
        claimed: The files that it fetches from the source, or has fetched.
        held: CRC-64/NVME of the files that it has.
    """

    name: str
    digest: str = ""
    claimed: set[Entry] = msgspec.field(default_factory=set)
    held: dict[Entry, int] = msgspec.field(default_factory=dict)


class Claim(msgspec.Struct, frozen=True):
    """Fetch these files from the source, and let the others know before."""

    entries: tuple[Entry, ...]


class Take(msgspec.Struct, frozen=True):
    """Fetch these files from a holder that has them."""

    peer: str
    entries: tuple[Entry, ...]


def owner(name: str, holders: Iterable[str]) -> str:
    """Which of the holders fetches a file from the source."""
    return max(holders, key=lambda holder: (_rank(holder, name), holder))


def _rank(holder: str, name: str) -> bytes:
    return hashlib.blake2b(f"{holder}\0{name}".encode(), digest_size=8).digest()


def step_bytes(total_bytes: int) -> int:
    """How many bytes one step may fetch of a dataset of this size."""
    return max(MIN_BYTES, -(-total_bytes // STEPS))


def next_step(
    missing: Sequence[Entry], me: str, digest: str, peers: Sequence[PeerView], max_bytes: int
) -> Claim | Take | None:
    """What to do next; None: others fetch what is missing, wait for them.

    Args:
        missing: The files that this holder does not have.
        me: Its name.
        digest: Of its manifest. A peer with another one owns nothing, but may have files.
        peers: The others that respond.
        max_bytes: Of one step; a larger file is one of its own.
    """
    sharers = [me, *(peer.name for peer in peers if peer.digest == digest)]
    known = [entries for peer in peers for entries in (peer.claimed, peer.held)]
    free = (entry for entry in missing if not any(entry in entries for entries in known))
    mine = first_of((entry for entry in free if owner(entry.name, sharers) == me), max_bytes)
    if mine:
        return Claim(mine)
    takes = [Take(peer.name, entries) for peer in peers if (entries := _from(peer, missing, peers, me))]
    if not takes:
        return None
    best = max(takes, key=lambda take: sum(entry.size + 1 for entry in take.entries))
    return Take(best.peer, first_of(best.entries, max_bytes))


def _from(peer: PeerView, missing: Sequence[Entry], peers: Sequence[PeerView], me: str) -> tuple[Entry, ...]:
    """The files to take from a peer. Of several that have a file, each holder prefers another one."""
    there = [entry for entry in missing if entry in peer.held]
    others = [other for other in peers if other is not peer]
    if not any(other.held for other in others):
        return tuple(there)
    holding = ((entry, [one.name for one in peers if entry in one.held]) for entry in there)
    return tuple(entry for entry, names in holding if owner(f"{me}\0{entry.name}", names) == peer.name)


def first_of(entries: Iterable[Entry], max_bytes: int) -> tuple[Entry, ...]:
    """The first files, at least one, that are no more than one step."""
    found: list[Entry] = []
    total = 0
    for entry in entries:
        total += entry.size
        if found and (total > max_bytes or len(found) >= MAX_FILES):
            break
        found.append(entry)
    return tuple(found)
