"""Explains a pod's annotations: what they resolve to, the lineage, the memory. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from podferry.cli.pods.explain_resources import ExplainedResources
from podferry.cli.pods.explain_values import ExplainedValue, explain_values
from podferry.cli.pods.manifests import FoundPod
from podferry.contract.annotations import read_annotations, settings_of
from podferry.contract.checkpoint_writer import is_read_only
from podferry.contract.cross_validation import gang_problems
from podferry.contract.dataset_volume import ListedSize
from podferry.contract.declared_datasets import NONE_DECLARED, Declared
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.lineage import lineage_of
from podferry.contract.memory_sum import NONE_LISTED, Row, memory_sum
from podferry.contract.pod_locations import (
    directory_problems,
    location_problems,
    unknown_scheme_warnings,
)
from podferry.contract.pod_owner import PodOwner, kfp_inputs_of, pod_owner_of, variables_of
from podferry.contract.spec import PREFIX, FerrySpec, Medium
from podferry.contract.variable_substitution import SOURCES, Variables
from podferry.webhook.pod.training_container import container_problems, training_code_of

NO_MEMORY_SUM = "no memory sum"
"""Start of the notes on sizes that are unknown."""
AUTO_MEDIUM = "is memory if the policy's bound allows it, else disk: see `podferry inject --policy`"


class Explanation(msgspec.Struct, frozen=True):
    """What is known about a pod without a cluster.

    Attributes:
        title: Kind and name.
        values: The resolved values with their sources.
        variables: The variables that its annotations may use and that have a value.
        lineage: The lineage of its checkpoints, or None.
        memory: The memory sum; empty if a size is unknown.
        notes: Assumptions and unknowns.
        problems: Errors in its annotations.
        resources: Of its containers; None if they were not asked for.
        spec: The resolved spec; None if the pod has not opted in or its annotations are invalid.
    """

    title: str
    values: tuple[ExplainedValue, ...] = ()
    variables: dict[str, str] = {}
    lineage: str | None = None
    memory: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    resources: ExplainedResources | None = None
    spec: FerrySpec | None = None

    def as_json(self) -> dict[str, Any]:
        """The fields, with each problem as a sentence."""
        return {**msgspec.structs.asdict(self), "problems": [str(problem) for problem in self.problems]}


def explain(found: FoundPod, declared: Declared = NONE_DECLARED, namespace: str | None = None) -> Explanation:
    """Explain annotations; `declared` has the policy's datasets, `namespace` applies if the pod sets none."""
    metadata = found.pod["metadata"]
    annotations = metadata.get("annotations") or {}
    try:
        owner = pod_owner_of(found.pod, metadata.get("namespace") or namespace)
        code = training_code_of(found.complete, settings_of(annotations).get("container"), owner.kind)
        variables = variables_of(owner, kfp_inputs_of(found.pod), code=code)
        spec = read_annotations(annotations, variables, declared)
    except InvalidSpec as error:
        return Explanation(found.title, problems=(*found.problems, *error.problems), notes=found.notes)
    settings = settings_of(annotations)
    if spec is None:
        return _untouched(found, settings)
    variables = msgspec.structs.replace(variables, world=spec.world)
    return add_memory(_resolved(found, spec, settings, owner, variables), spec)


def _untouched(found: FoundPod, settings: Mapping[str, str]) -> Explanation:
    opted_out = f'the pod has opted out: {PREFIX}inject is "false"'
    unannotated = f"the pod has no {PREFIX} annotation: podferry leaves it alone"
    note = opted_out if settings else unannotated
    return Explanation(found.title, problems=found.problems, notes=(*found.notes, note))


def _resolved(
    found: FoundPod, spec: FerrySpec, settings: Mapping[str, str], owner: PodOwner, variables: Variables
) -> Explanation:
    """All but the memory of a pod that has opted in."""
    metadata = found.pod["metadata"]
    identified = bool(owner.kind != "pod" or metadata.get("name") or metadata.get("generateName"))
    lineage, source = _lineage(spec, lineage_of(owner) if identified else None, owner.kind)
    gang = gang_problems(spec, owner.rank) if identified else ()
    unclear = container_problems(found.complete, spec.container, owner.kind)
    return Explanation(
        title=found.title,
        spec=spec,
        values=tuple(explain_values(spec, settings, variables, (lineage or "-", source))),
        variables=_variables_with_values(variables),
        lineage=lineage,
        problems=(*found.problems, *location_problems(spec), *directory_problems(spec), *gang, *unclear),
        notes=(
            *found.notes,
            *_undecided_media(spec),
            *_writers(spec, settings, owner),
            *unknown_scheme_warnings(spec),
        ),
    )


def _undecided_media(spec: FerrySpec) -> Iterator[str]:
    for dataset in spec.datasets:
        if dataset.medium is Medium.AUTO:
            yield f"{PREFIX}{dataset.key('medium')} {AUTO_MEDIUM}"


def _writers(spec: FerrySpec, settings: Mapping[str, str], owner: PodOwner) -> Iterator[str]:
    """Which pods write checkpoints, where that depends on the rank."""
    any_other = msgspec.structs.replace(owner, follows=True)
    if spec.checkpoints and owner.rank is not None and is_read_only(settings, any_other):
        yield f"without {PREFIX}world, rank 0 alone writes checkpoints; other pods only restore"


def add_memory(
    explanation: Explanation, spec: FerrySpec, listed: Mapping[str, ListedSize] = NONE_LISTED
) -> Explanation:
    """Add the memory sum with the `listed` sizes; unknown ones, which a policy may set, become notes."""
    try:
        return msgspec.structs.replace(explanation, memory=memory_sum(spec, listed).rows())
    except InvalidSpec as error:
        unknown = (f"{NO_MEMORY_SUM}: {problem}" for problem in error.problems)
        return msgspec.structs.replace(explanation, notes=(*explanation.notes, *unknown))


def _variables_with_values(variables: Variables) -> dict[str, str]:
    names = [*SOURCES, *(f"inputs.{name}" for name in variables.inputs)]
    values = ((name, variables.get(name)) for name in names)
    return {name: value for name, value in values if value is not None}


def _lineage(spec: FerrySpec, computed: str | None, owner_kind: str) -> tuple[str | None, str]:
    """The lineage and its source; `computed` is None for a pod of which only annotations are known."""
    if spec.checkpoints is None:
        return None, ""
    if spec.lineage is not None:
        return spec.lineage, "annotation"
    if computed is None:
        return None, "the pod's owner, or its name"
    sources = {"kfp": "namespace, pipeline, task and the inputs' hash", "pod": "the pod's name"}
    return computed, sources.get(owner_kind, f"namespace, kind and name of the {owner_kind}")
