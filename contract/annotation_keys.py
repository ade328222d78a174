"""Every annotation of this release: its name, how its value is read, what it does by default.

A key of a dataset may end with the name of one: `dataset.NAME` is another dataset, `include.NAME` belongs to
it. The documentation's table is printed from `KEYS`, so that it cannot say anything else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from podferry.contract.annotation_values import (
    parse_bool,
    parse_completion,
    parse_container,
    parse_destination,
    parse_endpoint,
    parse_integer,
    parse_lineage,
    parse_medium,
    parse_mode,
    parse_path,
    parse_region,
    parse_restore,
    parse_secret,
    parse_shard,
    parse_text,
    parse_unpack,
)
from podferry.contract.quantity import parse_bytes, parse_seconds
from podferry.contract.selection import parse_globs
from podferry.contract.spec import (
    CHECKPOINT_PATH,
    DATASET_NAME,
    DATASET_PATH,
    FILE_MODE,
    OUTPUT_PATH,
    PREFIX,
)

STAMPS = frozenset({"status", "spec", "policy-hash"})
"""Keys that podferry itself writes on a pod; they are no wishes."""
DIRECTIONS = ("dataset", "checkpoints", "outputs")
NAME = re.compile(DATASET_NAME)


class AnnotationKey(msgspec.Struct, frozen=True):
    """One annotation.

    Attributes:
        name: Without the prefix.
        parse: Text, its variables expanded, to value; raises InvalidWish.
        help: What it means, one line.
        default: What holds where it is absent, for people.
        named: Whether each dataset has it: `NAME` after a dot says which.
    """

    name: str
    parse: Callable[[str], Any]
    help: str
    default: str = "none"
    named: bool = False

    @property
    def full(self) -> str:
        """The annotation's key as it stands on a pod."""
        return PREFIX + self.name


def _access(direction: str) -> list[AnnotationKey]:
    """The three keys of a direction; of all for an empty one."""
    dash, of = (f"{direction}-", f"of the {direction}") if direction else ("", "of all directions")
    default = "without the prefix" if direction else "the pod's identity, the vendor's own"
    named = direction == "dataset"
    return [
        AnnotationKey(f"{dash}secret", parse_secret, f"Secret with the credentials {of}", default, named),
        AnnotationKey(f"{dash}endpoint", parse_endpoint, f"Address of the store {of}", default, named),
        AnnotationKey(f"{dash}region", parse_region, f"Region {of}", default, named),
    ]


DATASET_KEYS = (
    AnnotationKey("dataset", parse_text, "URI, reference, or declared name of the dataset to bring"),
    AnnotationKey("dataset-path", parse_path, "Directory in which the trainer reads it", DATASET_PATH),
    AnnotationKey(
        "dataset-size",
        parse_bytes,
        "Bytes to reserve for it, as files that are unpacked",
        "the reference's, else the policy's",
    ),
    AnnotationKey(
        "include", parse_globs, "Globs of the files to bring, separated by commas, spaces or lines", "all"
    ),
    AnnotationKey("exclude", parse_globs, "Globs of the files to leave out"),
    AnnotationKey(
        "file-mode", parse_mode, "Permission bits of its files, in octal digits", f"{FILE_MODE:04o}"
    ),
    AnnotationKey(
        "unpack", parse_unpack, "auto: what `podferry dataset pack` made; never; always: any archive", "auto"
    ),
    AnnotationKey(
        "shard", parse_shard, "The part of it that this pod has, such as $(rank)/$(world)", "the whole"
    ),
    AnnotationKey(
        "medium", parse_medium, "memory; disk (the node's); auto: memory where the policy allows it", "memory"
    ),
)
ALL_KEYS = (
    AnnotationKey("inject", parse_bool, 'Opts in, as any other key does; "false" opts out'),
    *(msgspec.structs.replace(key, named=True) for key in DATASET_KEYS),
    AnnotationKey("checkpoints", parse_destination, "URI that checkpoints are uploaded to"),
    AnnotationKey(
        "checkpoint-path", parse_path, "Directory in which the trainer writes them", CHECKPOINT_PATH
    ),
    AnnotationKey("checkpoint-size", parse_bytes, "Bytes of one checkpoint", "the policy's"),
    AnnotationKey("keep-local", parse_integer(0), "Durable checkpoints that stay in memory", "1"),
    AnnotationKey("keep-remote", parse_integer(1), "Commits that stay at the destination", "all"),
    AnnotationKey("restore", parse_restore, "auto, latest, never, a checkpoint's name, or a URI", "auto"),
    AnnotationKey("complete", parse_completion, "When one is whole: auto, or marked by the trainer", "auto"),
    AnnotationKey("upload-limit", parse_bytes, "Bytes a second that checkpoints' uploads may take"),
    AnnotationKey(
        "lineage", parse_lineage, "Which attempts are the same training", "the owner's or the KFP step's"
    ),
    AnnotationKey("world", parse_integer(1), "Number of pods that train together: $(world)", "1"),
    AnnotationKey("outputs", parse_destination, "URI that the output directory is uploaded to"),
    AnnotationKey("output-path", parse_path, "Directory in which the trainer writes outputs", OUTPUT_PATH),
    AnnotationKey("output-size", parse_bytes, "Bytes of all outputs", "the policy's"),
    AnnotationKey("outputs-every", parse_seconds, "Time between uploads of outputs", "at the end"),
    *_access(""),
    *_access("dataset"),
    *_access("checkpoints"),
    *_access("outputs"),
    AnnotationKey("shm-size", parse_bytes, "Size of the trainer's /dev/shm", "the policy's"),
    AnnotationKey("grace", parse_seconds, "Time between the pod's deletion and its end", "computed"),
    AnnotationKey("container", parse_container, "Name of the training container", "found"),
)
KEYS = {key.name: key for key in ALL_KEYS}
"""All keys by their names without the prefix, in the order in which they are documented."""


def split_key(name: str) -> tuple[str, str]:
    """A key without the prefix as key and dataset's name: `include.train` as `include` and `train`."""
    key, _, dataset = name.partition(".")
    return key, dataset


def known_keys(wishes: Iterable[str]) -> dict[str, AnnotationKey]:
    """All keys that a pod with these wishes may have, `KEY.NAME` after `KEY` for each name in them.

    Args:
        wishes: What stands on the pod, without the prefix.
    """
    names = sorted({name for _, name in map(split_key, wishes) if NAME.fullmatch(name)})
    return {
        full: key
        for key in ALL_KEYS
        for full in (key.name, *(f"{key.name}.{name}" for name in names if key.named))
    }
