"""Reads a lineage at its destination, with nothing of podferry's own reading."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from typing import Any

import obstore
import xxhash
from obstore.store import ObjectStore

SEQUENCE = re.compile(r"\.podferry/commits/(\d+)\.json$")
CONFIRMED = re.compile(r"\.podferry/confirmed/(\d+)(?:-(\d+))?\.json$")


class Destination:
    """The objects of one lineage; what was read is remembered until `forget`.

    Args:
        store: The destination's store, behind the proxy's back.
        lineage: Where in it: a prefix without a slash at its end.
    """

    def __init__(self, store: ObjectStore, lineage: str) -> None:
        self._store, self._lineage = store, lineage
        self._digests: dict[str, tuple[int, str, str]] = {}

    def forget(self) -> None:
        """Read every object again."""
        self._digests.clear()

    def commits(self) -> dict[int, str]:
        """The names of the commits, by their numbers."""
        numbered = ((SEQUENCE.search(name), name) for name in self._names("commits"))
        return {int(match[1]): name for match, name in numbered if match}

    def confirmed(self) -> set[tuple[int, int | None]]:
        """The commits that were confirmed, each with the rank whose part was, None for all."""
        found = (CONFIRMED.search(name) for name in self._names("confirmed"))
        return {(int(match[1]), int(match[2]) if match[2] else None) for match in found if match}

    def _names(self, folder: str) -> list[str]:
        listed = obstore.list(self._store, f"{self._lineage}/.podferry/{folder}")
        return [meta["path"] for page in listed for meta in page]

    def read(self, name: str) -> bytes | None:
        """An object, None if it does not exist."""
        try:
            return bytes(obstore.get(self._store, name).bytes())
        except FileNotFoundError:
            return None

    def held(self, name: str) -> tuple[int, str, str] | None:
        """Size, SHA-256 and XXH3-128 of a data object, by its name relative to the lineage."""
        name = f"{self._lineage}/{name}"
        if name not in self._digests:
            data = self.read(name)
            if data is None:
                return None
            sha256, xxh128 = hashlib.sha256(data).hexdigest(), xxhash.xxh3_128_hexdigest(data)
            self._digests[name] = (len(data), sha256, xxh128)
        return self._digests[name]

    def by_digest(self, held: tuple[int, str]) -> bytes:
        """The bytes of an object of this size and SHA-256 that was read before."""
        name = next(name for name, (size, sha256, _) in self._digests.items() if (size, sha256) == held)
        data = self.read(name)
        return data if data is not None else b""


def is_sure(commit: Mapping[str, Any], sequence: int, confirmed: Collection[tuple[int, int | None]]) -> bool:
    """Whether a commit says that it is complete, or all of its doubts were settled."""
    if commit.get("confidence", "sure") == "sure" or (sequence, None) in confirmed:
        return True
    return all((sequence, doubt.get("rank")) in confirmed for doubt in commit["doubts"])
