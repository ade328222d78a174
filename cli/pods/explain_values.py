"""Explains a pod's annotations: the resolved value and source of each, the lineage, the memory. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from podferry.cli.pods.explain_resources import ExplainedResources
from podferry.cli.pods.manifests import FoundPod
from podferry.contract.annotation_keys import DIRECTIONS, AnnotationKey, known_keys, split_key
from podferry.contract.annotations import NONE_DECLARED, read_annotations, settings_of
from podferry.contract.checkpoint_writer import is_read_only
from podferry.contract.cross_validation import gang_problems
from podferry.contract.dataset_volume import ListedSize
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.lineage import lineage_of
from podferry.contract.memory_sum import NONE_LISTED, Row, memory_sum
from podferry.contract.pod_locations import directory_problems, location_problems
from podferry.contract.pod_owner import PodOwner, kfp_inputs_of, pod_owner_of, variables_of
from podferry.contract.quantity import format_bytes
from podferry.contract.spec import PREFIX, Access, FerrySpec, Medium
from podferry.contract.variable_substitution import SOURCES, Variables, expand
from podferry.webhook.pod.training_container import container_problems

ACCESS_DEFAULTS = {
    "secret": "the pod's own identity",
    "endpoint": "the vendor's own",
    "region": "the vendor's own",
}
"""What applies if neither a direction nor the pod sets an access key."""
SIZES = frozenset({"dataset-size", "checkpoint-size", "output-size", "shm-size", "upload-limit"})
UNITS = {"grace": " s", "outputs-every": " s", "upload-limit": " a second"}
NO_MEMORY_SUM = "no memory sum"
"""Start of the notes on sizes that are unknown."""
DATASET_FIELDS = ("include", "exclude", "file-mode", "unpack", "shard", "medium")
CHECKPOINT_FIELDS = ("keep-local", "keep-remote", "restore", "complete", "upload-limit")
HIDDEN_IF_UNSET = frozenset({*DATASET_FIELDS, "mode"}) - {"medium"}
AUTO_MEDIUM = "is memory if the policy's bound allows it, else disk: see `podferry inject --policy`"
FIELDS = {
    "dataset": ("dataset", "reference"),
    "dataset-path": ("dataset", "path"),
    "dataset-size": ("dataset", "size"),
    "mode": ("dataset", "mode"),
    **{name: ("dataset", name.replace("-", "_")) for name in DATASET_FIELDS},
    "checkpoints": ("checkpoints", "uri"),
    "checkpoint-path": ("checkpoints", "path"),
    "checkpoint-size": ("checkpoints", "size"),
    **{name: ("checkpoints", name.replace("-", "_")) for name in CHECKPOINT_FIELDS},
    "outputs": ("outputs", "uri"),
    "output-path": ("outputs", "path"),
    "output-size": ("outputs", "size"),
    "outputs-every": ("outputs", "every"),
    **{f"{section}-{name}": (section, name) for section in DIRECTIONS for name in Access.__struct_fields__},
}
"""The section of the spec that holds a key's value, and the field in it or in its access."""


class ExplainedValue(msgspec.Struct, frozen=True):
    """One annotation of the resolved spec.

    Attributes:
        key: The annotation without the prefix.
        value: The resolved value, or `-`.
        source: Where the value comes from.
    """

    key: str
    value: str
    source: str


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


def explain(
    found: FoundPod, declared: Mapping[str, str] = NONE_DECLARED, namespace: str | None = None
) -> Explanation:
    """Explain annotations; `declared` has the policy's datasets, `namespace` applies if the pod sets none."""
    metadata = found.pod["metadata"]
    annotations = metadata.get("annotations") or {}
    try:
        owner = pod_owner_of(found.pod, metadata.get("namespace") or namespace)
        variables = variables_of(owner, kfp_inputs_of(found.pod))
        spec = read_annotations(annotations, variables, declared)
    except InvalidSpec as error:
        return Explanation(found.title, problems=(*found.problems, *error.problems), notes=found.notes)
    settings = settings_of(annotations)
    if spec is None:
        opted_out = f'the pod has opted out: {PREFIX}inject is "false"'
        untouched = f"the pod has no {PREFIX} annotation: podferry leaves it alone"
        note = opted_out if settings else untouched
        return Explanation(found.title, problems=found.problems, notes=(*found.notes, note))
    variables = msgspec.structs.replace(variables, world=spec.world)
    identified = bool(owner.kind != "pod" or metadata.get("name") or metadata.get("generateName"))
    lineage, source = _lineage(spec, lineage_of(owner) if identified else None, owner.kind)
    auto_media = [dataset.key("medium") for dataset in spec.datasets if dataset.medium is Medium.AUTO]
    gang = gang_problems(spec, owner.rank) if identified else ()
    unclear = container_problems(found.complete, spec.container, owner.kind)
    explanation = Explanation(
        title=found.title,
        spec=spec,
        values=tuple(_explain_values(spec, settings, variables, (lineage or "-", source))),
        variables=_variables_with_values(variables),
        lineage=lineage,
        problems=(*found.problems, *location_problems(spec), *directory_problems(spec), *gang, *unclear),
        notes=(
            *found.notes,
            *(f"{PREFIX}{key} {AUTO_MEDIUM}" for key in auto_media),
            *_writers(spec, settings, owner),
        ),
    )
    return add_memory(explanation, spec)


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


def _explain_values(
    spec: FerrySpec, settings: Mapping[str, str], variables: Variables, lineage: tuple[str, str]
) -> Iterator[ExplainedValue]:
    for name, key in known_keys(settings).items():
        if name in settings:
            written = settings[name]
            source = "annotation" if expand(written, variables) == written else f"annotation {written}"
            yield ExplainedValue(name, _format_value(name, spec) or written, source)
        elif name == "lineage" and spec.checkpoints is not None:
            yield ExplainedValue(name, *lineage)
        elif _is_shown_unset(name, spec):
            yield ExplainedValue(name, *_default(name, key, spec, settings))


def _default(name: str, key: AnnotationKey, spec: FerrySpec, settings: Mapping[str, str]) -> tuple[str, str]:
    """Value and source of a key that the pod does not set."""
    value = _format_value(name, spec)
    shared = key.name.rpartition("-")[2]
    if value is not None:
        return value, f"annotation {PREFIX}{shared}" if shared in settings else "default"
    if key.name == "dataset-size":
        reference = _locate(name, spec)[0].parsed
        if reference.bytes is not None:
            files = "" if reference.files is None else f" in {reference.files:,} files"
            return f"{format_bytes(reference.bytes)}{files}", "the reference"
    return "-", f"default: {ACCESS_DEFAULTS.get(shared) or key.default}"


def _is_shown_unset(name: str, spec: FerrySpec) -> bool:
    key = split_key(name)[0]
    if key in FIELDS:
        section, field = _locate(name, spec)
        return key not in HIDDEN_IF_UNSET and hasattr(section, field)
    return name not in {"inject", "lineage", "secret", "endpoint", "region"}


def _format_value(name: str, spec: FerrySpec) -> str | None:
    """The resolved value of a key for people, or None if it is not set."""
    section, field = _locate(name, spec)
    value, key = getattr(section, field, None), split_key(name)[0]
    if value is None or value == ():
        return None
    if isinstance(value, tuple):
        return " ".join(value)
    if key == "file-mode":
        return f"{value:04o}"
    text = format_bytes(value) if key in SIZES and isinstance(value, int) else str(value)
    return text + UNITS.get(key, "")


def _locate(name: str, spec: FerrySpec) -> tuple[Any, str]:
    """The object that holds a key's value (None if the spec has no such section), and the field in it."""
    key, dataset_name = split_key(name)
    if key not in FIELDS:
        return spec, key.replace("-", "_")
    section_name, field = FIELDS[key]
    if section_name == "dataset":
        section = next((dataset for dataset in spec.all_datasets if dataset.name == dataset_name), None)
    else:
        section = getattr(spec, section_name)
    return getattr(section, "access", None) if field in Access.__struct_fields__ else section, field
