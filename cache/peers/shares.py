"""Which holder fetches which part of which file from the source. Pure.

Most files are one part; large ones are cut, so that several holders fetch them together. Each part has one
owner among the holders that know of each other: the one with the highest hash of both names (rendezvous
hashing). All come to the same result without asking, and a holder that leaves changes nothing for the others'
parts. A part that another holder has, or has claimed, is taken from there, whoever owns it: a holder that
starts late fetches nothing twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from podferry.contract.file_part import FilePart

MAX_PARTS = 20_000
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
        claimed: The parts that it fetches from the source, or has fetched.
        held: CRC-64/NVME of the parts that it has.
    """

    name: str
    digest: str = ""
    claimed: set[FilePart] = msgspec.field(default_factory=set)
    held: dict[FilePart, int] = msgspec.field(default_factory=dict)


class Claim(msgspec.Struct, frozen=True):
    """Fetch these parts from the source, and let the others know before."""

    parts: tuple[FilePart, ...]


class Take(msgspec.Struct, frozen=True):
    """Fetch these parts from a holder that has them."""

    peer: str
    parts: tuple[FilePart, ...]


def owner(name: str, holders: Iterable[str]) -> str:
    """Which of the holders fetches a part from the source, by its key."""
    return max(holders, key=lambda holder: (_rank(holder, name), holder))


def _rank(holder: str, name: str) -> bytes:
    return hashlib.blake2b(f"{holder}\0{name}".encode(), digest_size=8).digest()


def step_bytes(total_bytes: int) -> int:
    """How many bytes one step may fetch of a dataset of this size."""
    return max(MIN_BYTES, -(-total_bytes // STEPS))


def next_step(
    missing: Sequence[FilePart], me: str, digest: str, peers: Sequence[PeerView], max_bytes: int
) -> Claim | Take | None:
    """What to do next; None: others fetch what is missing, wait for them.

    Args:
        missing: The parts that this holder does not have.
        me: Its name.
        digest: Of its manifest. A peer with another one owns nothing, but may have files.
        peers: The others that respond.
        max_bytes: Of one step; a larger part is one of its own.
    """
    sharers = [me, *(peer.name for peer in peers if peer.digest == digest)]
    known = [parts for peer in peers for parts in (peer.claimed, peer.held)]
    free = (part for part in missing if not any(part in parts for parts in known))
    mine = first_of((part for part in free if owner(part.key, sharers) == me), max_bytes)
    if mine:
        return Claim(mine)
    takes = [Take(peer.name, parts) for peer in peers if (parts := _from(peer, missing, peers, me))]
    if not takes:
        return None
    best = max(takes, key=lambda take: sum(part.length + 1 for part in take.parts))
    return Take(best.peer, first_of(best.parts, max_bytes))


def _from(
    peer: PeerView, missing: Sequence[FilePart], peers: Sequence[PeerView], me: str
) -> tuple[FilePart, ...]:
    """The parts to take from a peer. Of several that have a part, each holder prefers another one."""
    there = [part for part in missing if part in peer.held]
    others = [other for other in peers if other is not peer]
    if not any(other.held for other in others):
        return tuple(there)
    holding = ((part, [one.name for one in peers if part in one.held]) for part in there)
    return tuple(part for part, names in holding if owner(f"{me}\0{part.key}", names) == peer.name)


def first_of(parts: Iterable[FilePart], max_bytes: int) -> tuple[FilePart, ...]:
    """The first parts, at least one, that are no more than one step."""
    found: list[FilePart] = []
    total = 0
    for part in parts:
        total += part.length
        if found and (total > max_bytes or len(found) >= MAX_PARTS):
            break
        found.append(part)
    return tuple(found)
