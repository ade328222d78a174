"""The resolved value of each annotation of a pod, and its source. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from podferry.contract.annotation_keys import DIRECTIONS, AnnotationKey, known_keys, split_key
from podferry.contract.quantity import count_of, format_bytes
from podferry.contract.spec import PREFIX, Access, FerrySpec
from podferry.contract.variable_substitution import Variables, expand

ACCESS_DEFAULTS = {
    "secret": "the pod's own identity",
    "endpoint": "the vendor's own",
    "region": "the vendor's own",
}
"""What applies if neither a direction nor the pod sets an access key."""
SIZES = frozenset({"dataset-size", "checkpoint-size", "output-size", "shm-size", "upload-limit"})
UNITS = {"grace": " s", "outputs-every": " s", "upload-limit": " a second"}
DATASET_FIELDS = ("include", "exclude", "file-mode", "unpack", "shard", "medium")
CHECKPOINT_FIELDS = ("keep-local", "keep-remote", "restore", "complete", "upload-limit")
HIDDEN_IF_UNSET = frozenset({*DATASET_FIELDS, "mode"}) - {"medium"}
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


def explain_values(
    spec: FerrySpec, settings: Mapping[str, str], variables: Variables, lineage: tuple[str, str]
) -> Iterator[ExplainedValue]:
    """The annotations that are set, and those whose default matters; `lineage` is its value and source."""
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
            files = "" if reference.files is None else f" in {count_of(reference.files, 'file')}"
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
