"""The source of a cache that a verb is to change."""

from __future__ import annotations

from podferry.contract.dataset_reference import parse_reference
from podferry.contract.errors import Problem, Refused
from podferry.contract.uri import READ_ONLY_SCHEMES, Uri

MOUNTED = ("file", "pvc")
"""Schemes of sources that are paths in the holders' file system: the same path here is another directory."""


def writable_source(source: str) -> Uri:
    """Where the files are. Raises `Refused` for a source that cannot be changed from here."""
    reference = parse_reference(source)
    if reference.frozen:
        remedy = "Freeze the dataset again after the change, and create the cache with that"
        raise Refused.of("the dataset is frozen: pods would miss the files", str(reference), remedy)
    if reference.uri.scheme in MOUNTED:
        remedy = "Change it with a pod that mounts the same volume"
        raise Refused.of("the source is in the holders' pods, not here", str(reference.uri), remedy)
    if reference.uri.scheme in READ_ONLY_SCHEMES:
        raise Refused(Problem("nothing can be changed there", str(reference.uri), "Change it at its origin"))
    return reference.uri
