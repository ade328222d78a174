"""What a pod's annotations mean, as values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from podferry.cli.pods import Found
from podferry.contract.annotation_keys import DIRECTIONS, AnnotationKey, known_keys, split_key
from podferry.contract.annotations import NONE_DECLARED, read_annotations, settings_of
from podferry.contract.cross_validation import gang_problems
from podferry.contract.dataset_volume import ListedSize
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.lineage import lineage_of
from podferry.contract.memory import NONE_LISTED, Row, memory_sum
from podferry.contract.pod_owner import kfp_inputs_of, pod_owner_of, variables_of
from podferry.contract.quantity import format_bytes
from podferry.contract.spec import PREFIX, Access, FerrySpec, Medium
from podferry.contract.substitution import SOURCES, Variables, expand

OWN = {"secret": "the pod's own identity", "endpoint": "the vendor's own", "region": "the vendor's own"}
"""What holds where no direction has an access key."""
SIZES = frozenset({"dataset-size", "checkpoint-size", "output-size", "shm-size", "upload-limit"})
UNITS = {"grace": " s", "outputs-every": " s", "upload-limit": " a second"}
NO_SUM = "no memory sum"
"""Begins a note that says what is missing for one."""
OF_DATASET = ("include", "exclude", "file-mode", "unpack", "shard", "medium")
SELDOM = frozenset(OF_DATASET) - {"medium"}
"""Keys that are of no interest where they are not set."""
AUTO = "is memory where the policy's bound allows it, else disk: ask `podferry inject --policy`"
FIELDS = {
    "dataset": ("dataset", "reference"),
    "dataset-path": ("dataset", "path"),
    "dataset-size": ("dataset", "size"),
    **{name: ("dataset", name.replace("-", "_")) for name in OF_DATASET},
    "checkpoints": ("checkpoints", "uri"),
    "checkpoint-path": ("checkpoints", "path"),
    "checkpoint-size": ("checkpoints", "size"),
    "keep-local": ("checkpoints", "keep_local"),
    "keep-remote": ("checkpoints", "keep_remote"),
    "restore": ("checkpoints", "restore"),
    "complete": ("checkpoints", "complete"),
    "upload-limit": ("checkpoints", "upload_limit"),
    "outputs": ("outputs", "uri"),
    "output-path": ("outputs", "path"),
    "output-size": ("outputs", "size"),
    "outputs-every": ("outputs", "every"),
    **{f"{part}-{field}": (part, field) for part in DIRECTIONS for field in Access.__struct_fields__},
}
"""Where a key's value stands: the part of the spec, and the field in it or in its access."""


class ExplainedValue(msgspec.Struct, frozen=True):
    """One line of the resolved spec.

    Attributes:
        key: The annotation, without the prefix.
        value: What holds, `-` where nothing does.
        source: Where it comes from.
    """

    key: str
    value: str
    source: str


class Explanation(msgspec.Struct, frozen=True):
    """All that can be said of a pod without a cluster.

    Attributes:
        title: Kind and name.
        spec: Its wishes; None where it has none, or wrong ones.
        values: The resolved spec, with the source of each value.
        variables: What its annotations may refer to, where it has a value.
        lineage: Which attempts belong together; None where there are no checkpoints.
        memory: The sum; empty where a size is unknown.
        problems: What is wrong with its annotations.
        notes: What was assumed, and what is unknown.
    """

    title: str
    spec: FerrySpec | None = None
    values: tuple[ExplainedValue, ...] = ()
    variables: dict[str, str] = {}
    lineage: str | None = None
    memory: tuple[Row, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


def explain(
    found: Found, declared: Mapping[str, str] = NONE_DECLARED, namespace: str | None = None
) -> Explanation:
    """What the annotations of a pod mean.

    Args:
        found: The pod.
        declared: Datasets that the policy declares: references by name.
        namespace: Where it would be made, if the pod itself does not say.
    """
    annotations = found.pod["metadata"].get("annotations") or {}
    try:
        origin = pod_owner_of(found.pod, found.pod["metadata"].get("namespace") or namespace)
        variables = variables_of(origin, kfp_inputs_of(found.pod))
        spec = read_annotations(annotations, variables, declared)
    except InvalidSpec as error:
        return Explanation(found.title, problems=(*found.problems, *error.problems), notes=found.notes)
    if spec is None:
        return Explanation(found.title, problems=found.problems, notes=(*found.notes, _nothing(annotations)))
    variables = msgspec.structs.replace(variables, world=spec.world)
    lineage, why = _lineage(spec, found, lineage_of(origin), origin.kind)
    gang = gang_problems(spec, origin.rank) if _is_known(found, origin.kind) else ()
    shown = Explanation(
        title=found.title,
        spec=spec,
        values=tuple(_values(spec, settings_of(annotations), variables, (lineage, why))),
        variables=_known(variables),
        lineage=lineage,
        problems=(*found.problems, *gang),
        notes=(*found.notes, *_undecided(spec)),
    )
    return with_memory(shown)


def _undecided(spec: FerrySpec) -> list[str]:
    keys = [dataset.key("medium") for dataset in spec.datasets if dataset.medium is Medium.AUTO]
    return [f"{PREFIX}{key} {AUTO}" for key in keys]


def with_memory(shown: Explanation, listed: Mapping[str, ListedSize] = NONE_LISTED) -> Explanation:
    """The memory sum added; a size that nobody says becomes a note, since the policy may say it.

    Args:
        shown: A pod with wishes.
        listed: What its datasets really are, by their names.
    """
    assert shown.spec is not None  # noqa: S101 - only a pod with wishes has a memory sum
    try:
        rows = memory_sum(shown.spec, listed).rows()
    except InvalidSpec as error:
        unknown = (f"{NO_SUM}: {problem}" for problem in error.problems)
        return msgspec.structs.replace(shown, notes=(*shown.notes, *unknown))
    return msgspec.structs.replace(shown, memory=rows)


def _nothing(annotations: Mapping[str, str]) -> str:
    if settings_of(annotations):
        return f'the pod has opted out: {PREFIX}inject is "false"'
    return f"the pod has no {PREFIX} annotation: podferry leaves it alone"


def _known(variables: Variables) -> dict[str, str]:
    names = [*SOURCES, *(f"inputs.{name}" for name in variables.inputs)]
    values = ((name, variables.get(name)) for name in names)
    return {name: value for name, value in values if value is not None}


def _lineage(spec: FerrySpec, found: Found, computed: str, kind: str) -> tuple[str | None, str]:
    if spec.checkpoints is None:
        return None, ""
    if spec.lineage is not None:
        return spec.lineage, "annotation"
    if not _is_known(found, kind):
        return None, "the pod's owner, or its name"
    if kind == "kfp":
        return computed, "namespace, pipeline, task and the inputs' hash"
    return computed, "the pod's name" if kind == "pod" else f"namespace, kind and name of the {kind}"


def _is_known(found: Found, kind: str) -> bool:
    """Whether there is more of the pod than its annotations."""
    metadata = found.pod["metadata"]
    return bool(kind != "pod" or metadata.get("name") or metadata.get("generateName"))


def _values(
    spec: FerrySpec,
    wishes: Mapping[str, str],
    variables: Variables,
    lineage: tuple[str | None, str],
) -> list[ExplainedValue]:
    values = []
    for name, key in known_keys(wishes).items():
        if name in wishes:
            values.append(
                ExplainedValue(name, _text(name, spec) or wishes[name], _written(wishes[name], variables))
            )
        elif name == "lineage" and spec.checkpoints is not None:
            values.append(ExplainedValue(name, lineage[0] or "-", lineage[1]))
        elif _applies(name, spec):
            values.append(ExplainedValue(name, *_default(name, key, spec, wishes)))
    return values


def _written(raw: str, variables: Variables) -> str:
    """`annotation`, and how it was written where that is not what it became."""
    return "annotation" if expand(raw, variables) == raw else f"annotation {raw}"


def _default(name: str, key: AnnotationKey, spec: FerrySpec, wishes: Mapping[str, str]) -> tuple[str, str]:
    """Value and source of a key that the pod does not set."""
    value = _text(name, spec)
    shared = key.name.rpartition("-")[2]
    if value is not None:
        return value, f"annotation {PREFIX}{shared}" if shared in wishes else "default"
    reference = _part(name, spec).parsed if key.name == "dataset-size" else None
    if reference is not None and reference.bytes is not None:
        files = "" if reference.files is None else f" in {reference.files:,} files"
        return f"{format_bytes(reference.bytes)}{files}", "the reference"
    return "-", f"default: {OWN.get(shared) or key.default}"


def _applies(name: str, spec: FerrySpec) -> bool:
    """Whether a key that is not set is worth a line."""
    key = split_key(name)[0]
    if key in FIELDS:
        return key not in SELDOM and _part(name, spec) is not None
    return name not in {"inject", "lineage", "secret", "endpoint", "region"}


def _text(name: str, spec: FerrySpec) -> str | None:
    """The value of a key in the resolved spec, for people."""
    value, key = _value(name, spec), split_key(name)[0]
    if value is None or value == ():
        return None
    if isinstance(value, tuple):
        return " ".join(value)
    if key == "file-mode":
        return f"{value:04o}"
    shown = format_bytes(value) if key in SIZES and isinstance(value, int) else str(value)
    return shown + UNITS.get(key, "")


def _part(name: str, spec: FerrySpec) -> Any:
    """The dataset, or the other part of the spec, that a key is of; None where there is none."""
    key, named = split_key(name)
    part = FIELDS[key][0]
    if part == "dataset":
        return next((dataset for dataset in spec.datasets if dataset.name == named), None)
    return getattr(spec, part)


def _value(name: str, spec: FerrySpec) -> Any:
    holder: Any = spec
    key = split_key(name)[0]
    field = key.replace("-", "_")
    if key in FIELDS:
        holder, field = _part(name, spec), FIELDS[key][1]
        holder = holder.access if holder and field in Access.__struct_fields__ else holder
    return getattr(holder, field, None)
