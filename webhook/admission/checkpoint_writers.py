"""Warnings about who writes the checkpoints of a workload, from the specs of all its templates. Pure.

A pod knows its own place only, and its warnings reach nobody; here all templates are known, and people read
what is said when they apply the workload.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from podferry.contract.spec import PREFIX, FerrySpec

APART = f"give each its own {PREFIX}lineage, or annotate one"


class TemplateSpec(msgspec.Struct, frozen=True):
    """The spec of the first pod of a template.

    Attributes:
        title: The template, for people.
        spec: Its resolved spec, with checkpoints.
        pods: How many pods are made of the template, None if that is unknown.
    """

    title: str
    spec: FerrySpec
    pods: int | None

    @property
    def writes(self) -> bool:
        """Whether its first pod may write checkpoints."""
        return self.spec.checkpoints is not None and not self.spec.checkpoints.read_only


def writer_warnings(templates: Sequence[TemplateSpec]) -> Iterator[str]:
    """What will not work as its author may think; `templates` are those with checkpoints."""
    shared: Mapping[tuple[str, str | None], list[TemplateSpec]] = defaultdict(list)
    for one in templates:
        if one.spec.checkpoints is not None:
            shared[one.spec.checkpoints.uri, one.spec.lineage].append(one)
    for (_, lineage), group in shared.items():
        yield from _nobody(group)
        yield from _same_rank(f"lineage {lineage}", group)
        yield from _without_rank(f"lineage {lineage}", group)
        yield from _other_world(group)


def _titles(group: Iterable[TemplateSpec]) -> str:
    return " and ".join(one.title for one in group)


def _nobody(group: Sequence[TemplateSpec]) -> Iterator[str]:
    if not any(one.writes for one in group):
        what = f"{_titles(group)}: none of these pods is rank 0, so no checkpoint is uploaded"
        yield f"{what}; annotate the template of rank 0 too, or set {PREFIX}world"


def _same_rank(lineage: str, group: Sequence[TemplateSpec]) -> Iterator[str]:
    same = [one for one in group if one.writes and one.spec.rank == 0]
    if len(same) > 1:
        yield f"{_titles(same)}: each has a rank 0 of {lineage}; if both write, one takes over: {APART}"


def _without_rank(lineage: str, group: Sequence[TemplateSpec]) -> Iterator[str]:
    for one in group:
        if one.writes and one.spec.rank is None and (one.pods or 1) > 1:
            what = f"{one.title}: {one.pods} pods without a rank share {lineage}"
            yield f"{what}; if two of them write checkpoints, one takes over from the other"


def _other_world(group: Sequence[TemplateSpec]) -> Iterator[str]:
    """With too few pods no checkpoint is ever complete; with too many, some are refused."""
    counts, worlds = [one.pods for one in group], {one.spec.world for one in group}
    (world, *others), pods = worlds, sum(count or 0 for count in counts)
    if world > 1 and not others and None not in counts and pods != world:
        what = f"{_titles(group)}: {PREFIX}world is {world}, but there are {pods} pods"
        yield f"{what}; a checkpoint is complete when {world} pods have written their parts"
