"""Every annotation of this release: name, parser, help and default.

A per-dataset key may end with a dataset's name: `dataset.NAME` is another dataset, `include.NAME` applies to
it. The table in docs/annotations.md is generated from `KEYS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from podferry.contract.annotation_values import (
    integer_parser,
    parse_bool,
    parse_completion,
    parse_container,
    parse_dataset_mode,
    parse_destination,
    parse_endpoint,
    parse_lineage,
    parse_medium,
    parse_mode,
    parse_path,
    parse_region,
    parse_restore,
    parse_secret,
    parse_shard,
    parse_size,
    parse_text,
    parse_unpack,
)
from podferry.contract.lazy_pattern import lazy_pattern
from podferry.contract.quantity import parse_seconds
from podferry.contract.selection import parse_globs
from podferry.contract.spec import CHECKPOINT_PATH, DATASET_NAME, DATASET_PATH, FILE_MODE, OUTPUT_PATH, PREFIX

STAMPS = frozenset({"status", "spec", "policy-hash", "signature", "rule", "reason", "trainer-memory"})
"""Keys that podferry itself sets on a pod; they are not settings."""
DIRECTIONS = ("dataset", "checkpoints", "outputs")
NAME = lazy_pattern(DATASET_NAME)


class AnnotationKey(msgspec.Struct, frozen=True):
    """One annotation.

    Attributes:
        name: Without the prefix.
        parse: Converts the text, after substitution, to a value; raises InvalidSpec.
        help: Its meaning, one line.
        default: What applies if it is absent, for people.
        per_dataset: Whether each dataset has its own, as `KEY.NAME`.
    """

    name: str
    parse: Callable[[str], Any]
    help: str
    default: str = "none"
    per_dataset: bool = False

    @property
    def annotation(self) -> str:
        """The annotation's full key on a pod."""
        return PREFIX + self.name


ACCESS_KEYS = (
    AnnotationKey("secret", parse_secret, "Secret with the credentials of", "the pod's identity"),
    AnnotationKey("endpoint", parse_endpoint, "Address of the store of", "the vendor's own"),
    AnnotationKey("region", parse_region, "Region of", "the vendor's own"),
)


def _access(direction: str) -> list[AnnotationKey]:
    """The access keys of one direction, which default to the keys of all directions."""
    named, own = f"the {direction}", direction == "dataset"
    return [
        AnnotationKey(f"{direction}-{key.name}", key.parse, f"{key.help} {named}", f"`{key.name}`", own)
        for key in ACCESS_KEYS
    ]


DATASET_KEYS = (
    AnnotationKey("dataset", parse_text, "URI, reference or declared name of the dataset to stage"),
    AnnotationKey("dataset-path", parse_path, "Directory where the trainer reads it", DATASET_PATH),
    AnnotationKey(
        "dataset-size",
        parse_size,
        "Bytes to reserve for it, counted as unpacked files",
        "the reference's, else the policy's",
    ),
    AnnotationKey(
        "include", parse_globs, "Globs of files to stage, separated by commas, spaces or lines", "all"
    ),
    AnnotationKey("exclude", parse_globs, "Globs of files to leave out"),
    AnnotationKey("file-mode", parse_mode, "Permission bits of its files, in octal", f"{FILE_MODE:04o}"),
    AnnotationKey(
        "unpack", parse_unpack, "auto: packs of `podferry dataset pack`; never; always: any archive", "auto"
    ),
    AnnotationKey("shard", parse_shard, "This pod's part of it, such as $(rank)/$(world)", "all of it"),
    AnnotationKey(
        "medium", parse_medium, "memory; disk (the node's); auto: memory if the policy allows", "memory"
    ),
    AnnotationKey(
        "mode", parse_dataset_mode, "copy; share: mount pvc://CLAIM/PATH; image: mount image://NAME", "copy"
    ),
)
WRITTEN_SIZE = "the policy's, in a KFP step else 1Gi"
ALL_KEYS = (
    AnnotationKey("inject", parse_bool, 'Opts in, like any other key; "false" opts out'),
    *(msgspec.structs.replace(key, per_dataset=True) for key in DATASET_KEYS),
    AnnotationKey("checkpoints", parse_destination, "URI to upload checkpoints to"),
    AnnotationKey("checkpoint-path", parse_path, "Directory where the trainer writes them", CHECKPOINT_PATH),
    AnnotationKey("checkpoint-size", parse_size, "Bytes of one checkpoint", WRITTEN_SIZE),
    AnnotationKey("keep-local", integer_parser(0), "Durable checkpoints to keep in memory", "1"),
    AnnotationKey("keep-remote", integer_parser(1), "Commits to keep at the destination", "all"),
    AnnotationKey("restore", parse_restore, "auto, latest, never, a checkpoint's name, or a URI", "auto"),
    AnnotationKey(
        "complete", parse_completion, "When one is complete: auto, or marked by the trainer", "auto"
    ),
    AnnotationKey("upload-limit", parse_size, "Maximum bytes per second of checkpoint uploads"),
    AnnotationKey(
        "lineage",
        parse_lineage,
        "Attempts that share it are one training run",
        "the owner's or the KFP step's",
    ),
    AnnotationKey("world", integer_parser(1), "Number of pods that train together: $(world)", "1"),
    AnnotationKey("outputs", parse_destination, "URI to upload the output directory to"),
    AnnotationKey("output-path", parse_path, "Directory where the trainer writes outputs", OUTPUT_PATH),
    AnnotationKey("output-size", parse_size, "Bytes of all outputs", WRITTEN_SIZE),
    AnnotationKey("outputs-every", parse_seconds, "Time between uploads of outputs", "at the end"),
    *(msgspec.structs.replace(key, help=f"{key.help} all directions") for key in ACCESS_KEYS),
    *(key for direction in DIRECTIONS for key in _access(direction)),
    AnnotationKey("shm-size", parse_size, "Size of the trainer's /dev/shm", "the policy's"),
    AnnotationKey("grace", parse_seconds, "Time from the pod's deletion to its end", "computed"),
    AnnotationKey("container", parse_container, "Name of the training container", "detected"),
)
KEYS = {key.name: key for key in ALL_KEYS}
"""All keys by name without the prefix, in the order of the documentation."""


def split_key(name: str) -> tuple[str, str]:
    """Split a key without the prefix into key and dataset name: `include.train` -> `include`, `train`."""
    key, _, dataset = name.partition(".")
    return key, dataset


def dataset_names(settings: Iterable[str]) -> list[str]:
    """Names of the datasets that keys are for; the empty one is always there."""
    return sorted({"", *(name for _, name in map(split_key, settings) if NAME.fullmatch(name))})


def known_keys(settings: Iterable[str]) -> Mapping[str, AnnotationKey]:
    """All keys that a pod with these settings may have: per-dataset keys also with each dataset's name."""
    names = sorted({name for _, name in map(split_key, settings) if NAME.fullmatch(name)})
    if not names:
        return KEYS
    return {
        full: key
        for key in ALL_KEYS
        for full in (key.name, *(f"{key.name}.{name}" for name in names if key.per_dataset))
    }
