"""The namespace of a pod under admission."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

import msgspec

from podferry.webhook.pod.known_cache import KnownCache


class Namespace(msgspec.Struct, frozen=True):
    """The namespace of a pod.

    Attributes:
        name: As in the admission request.
        labels: Its labels; empty if unknown.
        labels_known: Whether they could be read.
        caches: Those that its pods may read from.
    """

    name: str
    labels: Mapping[str, str] = {}
    labels_known: bool = True
    caches: tuple[KnownCache, ...] = ()

    def is_named(self, globs: Sequence[str]) -> bool:
        """Whether one of the globs matches its name; no globs match every name."""
        return not globs or any(fnmatchcase(self.name, glob) for glob in globs)

    def has_labels(self, labels: Mapping[str, str]) -> bool:
        """Whether it has all of these labels."""
        return labels.items() <= dict(self.labels).items()
