"""What a pod's annotations mean, as values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from podferry.cli.pods import Found
from podferry.contract.annotations import NOTHING, read_annotations, wishes_of
from podferry.contract.cross import gang_problems
from podferry.contract.errors import InvalidWish, Problem
from podferry.contract.keys import DIRECTIONS, KEYS
from podferry.contract.lineage import lineage_of
from podferry.contract.memory import Row, memory_sum
from podferry.contract.origin import kfp_inputs_of, origin_of, variables_of
from podferry.contract.quantity import format_bytes
from podferry.contract.spec import PREFIX, Access, FerrySpec
from podferry.contract.variables import SOURCES, Variables, expand

OWN = {"secret": "the pod's own identity", "endpoint": "the vendor's own", "region": "the vendor's own"}
"""What holds where no direction has an access key."""
SIZES = frozenset({"dataset-size", "checkpoint-size", "output-size", "shm-size", "upload-limit"})
UNITS = {"grace": " s", "outputs-every": " s", "upload-limit": " a second"}
FIELDS = {
    "dataset": ("dataset", "reference"),
    "dataset-path": ("dataset", "path"),
    "dataset-size": ("dataset", "size"),
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


class Value(msgspec.Struct, frozen=True):
    """One line of the resolved spec.

    Attributes:
        key: The annotation, without the prefix.
        value: What holds, `-` where nothing does.
        source: Where it comes from.
    """

    key: str
    value: str
    source: str


class Sized(msgspec.Struct, frozen=True):
    """A dataset's listing, as far as the memory sum needs it."""

    files: int
    bytes: int


class Explained(msgspec.Struct, frozen=True):
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
    values: tuple[Value, ...] = ()
    variables: dict[str, str] = {}
    lineage: str | None = None
    memory: tuple[Row, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


def explain(found: Found, declared: Mapping[str, str] = NOTHING, namespace: str | None = None) -> Explained:
    """What the annotations of a pod mean.

    Args:
        found: The pod.
        declared: Datasets that the policy declares: references by name.
        namespace: Where it would be made, if the pod itself does not say.
    """
    annotations = found.pod["metadata"].get("annotations") or {}
    try:
        origin = origin_of(found.pod, found.pod["metadata"].get("namespace") or namespace)
        variables = variables_of(origin, kfp_inputs_of(found.pod))
        spec = read_annotations(annotations, variables, declared)
    except InvalidWish as error:
        return Explained(found.title, problems=(*found.problems, *error.problems), notes=found.notes)
    if spec is None:
        return Explained(found.title, problems=found.problems, notes=(*found.notes, _nothing(annotations)))
    variables = msgspec.structs.replace(variables, world=spec.world)
    lineage, why = _lineage(spec, found, lineage_of(origin), origin.kind)
    gang = gang_problems(spec, origin.rank) if _is_known(found, origin.kind) else ()
    shown = Explained(
        title=found.title,
        spec=spec,
        values=tuple(_values(spec, wishes_of(annotations), variables, (lineage, why))),
        variables=_known(variables),
        lineage=lineage,
        problems=(*found.problems, *gang),
        notes=found.notes,
    )
    return with_memory(shown)


def with_memory(shown: Explained, sized: Sized | None = None) -> Explained:
    """The memory sum added; a size that nobody says becomes a note, since the policy may say it."""
    assert shown.spec is not None  # noqa: S101 - only a pod with wishes has a memory sum
    known = (sized.bytes, sized.files) if sized else (None, None)
    try:
        rows = memory_sum(shown.spec, *known).rows()
    except InvalidWish as error:
        unknown = (f"no memory sum: {problem}" for problem in error.problems)
        return msgspec.structs.replace(shown, notes=(*shown.notes, *unknown))
    return msgspec.structs.replace(shown, memory=rows)


def _nothing(annotations: Mapping[str, str]) -> str:
    if wishes_of(annotations):
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
) -> list[Value]:
    values = []
    for name in KEYS:
        if name in wishes:
            values.append(Value(name, _text(name, spec) or wishes[name], _written(wishes[name], variables)))
        elif name == "lineage" and spec.checkpoints is not None:
            values.append(Value(name, lineage[0] or "-", lineage[1]))
        elif _applies(name, spec):
            values.append(Value(name, *_default(name, spec, wishes)))
    return values


def _written(raw: str, variables: Variables) -> str:
    """`annotation`, and how it was written where that is not what it became."""
    return "annotation" if expand(raw, variables) == raw else f"annotation {raw}"


def _default(name: str, spec: FerrySpec, wishes: Mapping[str, str]) -> tuple[str, str]:
    """Value and source of a key that the pod does not set."""
    value = _text(name, spec)
    shared = name.rpartition("-")[2]
    if value is not None:
        return value, f"annotation {PREFIX}{shared}" if shared in wishes else "default"
    reference = spec.dataset.parsed if spec.dataset else None
    if name == "dataset-size" and reference is not None and reference.bytes is not None:
        files = "" if reference.files is None else f" in {reference.files:,} files"
        return f"{format_bytes(reference.bytes)}{files}", "the reference"
    return "-", f"default: {OWN.get(shared) or KEYS[name].default}"


def _applies(name: str, spec: FerrySpec) -> bool:
    """Whether a key that is not set is worth a line."""
    if name in FIELDS:
        return getattr(spec, FIELDS[name][0]) is not None
    return name not in {"inject", "lineage", "secret", "endpoint", "region"}


def _text(name: str, spec: FerrySpec) -> str | None:
    """The value of a key in the resolved spec, for people."""
    value = _value(name, spec)
    if value is None:
        return None
    shown = format_bytes(value) if name in SIZES and isinstance(value, int) else str(value)
    return shown + UNITS.get(name, "")


def _value(name: str, spec: FerrySpec) -> str | int | None:
    holder: Any = spec
    field = name.replace("-", "_")
    if name in FIELDS:
        part, field = FIELDS[name]
        holder = getattr(spec, part)
        holder = holder.access if holder and field in Access.__struct_fields__ else holder
    found: str | int | None = getattr(holder, field, None)
    return found
