"""What is wrong with the source of a cache: holders reach stores, and claims of their namespace. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from podferry.cache.manifests.cache_spec import CacheSpec
from podferry.contract.claims import SCHEME
from podferry.contract.errors import Problem
from podferry.contract.pod_locations import location_problems
from podferry.contract.spec import PREFIX


def source_problems(spec: CacheSpec) -> Iterator[Problem]:
    """Everything that is wrong with it; `Problem.what` calls it the source."""
    for one in location_problems(spec.ferry):
        yield Problem(one.what.replace(f"{PREFIX}dataset", "the source"), one.measured, one.remedy)
    if spec.refresh is not None and spec.dataset.parsed.frozen:
        measured = f"refresh after {spec.refresh} s"
        yield Problem("a frozen dataset does not change", measured, "Leave refresh out")
    others = sorted({*spec.readers} - {spec.namespace})
    if spec.dataset.parsed.uri.scheme == SCHEME and others:
        what = "a claim belongs to one namespace: in others, its name is another claim"
        remedy = "Remove these readers, and create a cache in each namespace, with --namespace"
        yield Problem(what, f"{spec.source} of {spec.namespace}, readers {', '.join(others)}", remedy)
