"""Every annotation of this release: its name, how its value is read, what it does by default.

A key of a dataset may end with the name of one: `dataset.NAME` is another dataset, `include.NAME` belongs to
it. The documentation's table is printed from `KEYS`, so that it cannot say anything else.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from podferry.contract.errors import InvalidSpec
from podferry.contract.file_names import name_problem
from podferry.contract.lineage import lineage_problem
from podferry.contract.quantity import parse_bytes, parse_seconds
from podferry.contract.selection import parse_globs
from podferry.contract.spec import (
    CHECKPOINT_PATH,
    DATASET_NAME,
    DATASET_PATH,
    FILE_MODE,
    OUTPUT_PATH,
    PREFIX,
    SHM,
    Completion,
    Medium,
    Shard,
    Unpack,
)
from podferry.contract.uri import parse_uri

STAMPS = frozenset({"status", "spec", "policy-hash"})
"""Keys that podferry itself writes on a pod; they are no wishes."""
DIRECTIONS = ("dataset", "checkpoints", "outputs")
RESTORE_WORDS = ("auto", "latest", "never")
LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
"""DNS-1123 label, source: RFC 1123 as Kubernetes uses it for the names of containers."""
SUBDOMAIN = re.compile(rf"{LABEL.pattern}(\.{LABEL.pattern})*")
ENDPOINT = re.compile(r"https?://[^/?#\s@]+(/[^?#\s]*)?")
REGION = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?")
COUNT = re.compile(r"\d{1,9}")
MODE = re.compile(r"0?[0-7]{3}")
SHARD = re.compile(r"(\d{1,9})/(\d{1,9})")
NAME = re.compile(DATASET_NAME)
SYSTEM = ("/dev", "/proc", "/sys")
E = TypeVar("E", bound=StrEnum)


class Key(msgspec.Struct, frozen=True):
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


def parse_switch(text: str) -> bool:
    """`true` or `false`."""
    if text not in {"true", "false"}:
        raise InvalidSpec.of("neither true nor false", repr(text), 'Write "true" or "false"')
    return text == "true"


def parse_some(text: str) -> str:
    """Any text but an empty one."""
    if not text.strip():
        raise InvalidSpec.of("the value is empty", repr(text), "Write a value or remove the annotation")
    return text.strip()


def parse_path(text: str) -> str:
    """An absolute, normalised directory that a volume may be mounted on."""
    if not text.startswith("/") or ":" in text or any(ord(letter) < 32 for letter in text):
        raise InvalidSpec.of(
            "no absolute path that can be mounted on", repr(text), f"Write a path such as {SHM}/NAME"
        )
    normal = "/" + posixpath.normpath(text).lstrip("/")
    if normal != text:
        raise InvalidSpec.of("the path is not normalised", repr(text), f"Write {normal}")
    system = any(text == top or text.startswith(f"{top}/") for top in SYSTEM)
    if text in {"/", SHM} or (system and not text.startswith(f"{SHM}/")):
        raise InvalidSpec.of("the path belongs to the system", repr(text), f"Write a path below {SHM}")
    return text


def parse_destination(text: str) -> str:
    """A URI without a fragment, in its canonical text."""
    if "#" in text:
        raise InvalidSpec.of(
            "a destination has no fragment",
            repr(text),
            "Leave out what follows the #; write %23 where the key holds a #",
        )
    return str(parse_uri(text))


def parse_restore(text: str) -> str:
    """`auto`, `latest`, `never`, a checkpoint's name, or a URI in its canonical text."""
    word = parse_some(text)
    if "://" in word or word.startswith("/"):
        return parse_destination(word)
    if word not in RESTORE_WORDS and word.lower() in RESTORE_WORDS:
        raise InvalidSpec.of("the word is written in lower case", repr(text), f"Write {word.lower()}")
    problem = name_problem(word)
    if problem:
        remedy = "Write auto, latest, never, a checkpoint's name or a URI"
        raise InvalidSpec.of(f"no checkpoint to restore: {problem.what}", repr(text), remedy)
    return word


def word_of(kind: type[E]) -> Callable[[str], E]:
    """A parser of the words of `kind`."""
    *others, last = kind
    words = f"{', '.join(others)} or {last}"

    def parse(text: str) -> E:
        try:
            return kind(text.strip())
        except ValueError:
            raise InvalidSpec.of(f"none of {words}", repr(text), f"Write {words}") from None

    return parse


parse_completion = word_of(Completion)
parse_unpack = word_of(Unpack)
parse_medium = word_of(Medium)


def parse_mode(text: str) -> int:
    """Permission bits as `chmod` takes them, in octal digits: `0644`."""
    if not MODE.fullmatch(text.strip()) or not 0o400 & int(text, 8):
        remedy = "Write octal digits from 0400 to 0777: 0644"
        raise InvalidSpec.of("no mode of files that their owner can read", repr(text), remedy)
    return int(text, 8)


def parse_shard(text: str) -> Shard:
    """A pod's part: `RANK/COUNT`, the rank from 0."""
    remedy = "Write RANK/COUNT with a rank from 0, such as 0/4, or $(rank)/$(world)"
    match = SHARD.fullmatch(text.strip())
    if match is None:
        raise InvalidSpec.of("no part of a dataset", repr(text), remedy)
    rank, count = int(match[1]), int(match[2])
    if rank >= count:
        raise InvalidSpec.of("a part that the dataset does not have", repr(text), remedy)
    return Shard(rank, count)


def parse_lineage(text: str) -> str:
    """A lineage: one path segment."""
    InvalidSpec.raise_any(filter(None, [lineage_problem(text)]))
    return text


def parse_secret(text: str) -> str:
    """The name of a Secret."""
    if len(text) > 253 or not SUBDOMAIN.fullmatch(text):
        raise InvalidSpec.of(
            "no name of a Secret",
            repr(text),
            "Write the name alone, of a-z, 0-9, '-' and '.': the Secret lies in the pod's namespace",
        )
    return text


def parse_endpoint(text: str) -> str:
    """The address of a service, without credentials and query."""
    if not ENDPOINT.fullmatch(text):
        raise InvalidSpec.of("no endpoint", repr(text), "Write https://host:port or http://host:port")
    return text.rstrip("/")


def parse_region(text: str) -> str:
    """A region's name."""
    if not REGION.fullmatch(text):
        raise InvalidSpec.of("no region", repr(text), "Write its name, for example eu-central-1")
    return text


def parse_container(text: str) -> str:
    """A container's name."""
    if not LABEL.fullmatch(text):
        raise InvalidSpec.of("no container's name", repr(text), "Write the name as it stands in the pod")
    return text


def at_least(least: int) -> Callable[[str], int]:
    """A parser of whole numbers from `least` on."""

    def parse(text: str) -> int:
        if not COUNT.fullmatch(text.strip()) or int(text) < least:
            raise InvalidSpec.of(f"no whole number of {least} or more", repr(text), f"Write {least} or more")
        return int(text)

    return parse


def _access(direction: str) -> list[Key]:
    """The three keys of a direction; of all for an empty one."""
    dash, of = (f"{direction}-", f"of the {direction}") if direction else ("", "of all directions")
    default = "without the prefix" if direction else "the pod's identity, the vendor's own"
    named = direction == "dataset"
    return [
        Key(f"{dash}secret", parse_secret, f"Secret with the credentials {of}", default, named),
        Key(f"{dash}endpoint", parse_endpoint, f"Address of the store {of}", default, named),
        Key(f"{dash}region", parse_region, f"Region {of}", default, named),
    ]


DATASET = (
    Key("dataset", parse_some, "URI, reference, or declared name of the dataset to bring"),
    Key("dataset-path", parse_path, "Directory in which the trainer reads it", DATASET_PATH),
    Key(
        "dataset-size",
        parse_bytes,
        "Bytes to reserve for it, as files that are unpacked",
        "the reference's, else the policy's",
    ),
    Key("include", parse_globs, "Globs of the files to bring, separated by commas, spaces or lines", "all"),
    Key("exclude", parse_globs, "Globs of the files to leave out"),
    Key("file-mode", parse_mode, "Permission bits of its files, in octal digits", f"{FILE_MODE:04o}"),
    Key(
        "unpack", parse_unpack, "auto: what `podferry dataset pack` made; never; always: any archive", "auto"
    ),
    Key("shard", parse_shard, "The part of it that this pod has, such as $(rank)/$(world)", "the whole"),
    Key(
        "medium", parse_medium, "memory; disk (the node's); auto: memory where the policy allows it", "memory"
    ),
)
TABLE = (
    Key("inject", parse_switch, 'Opts in, as any other key does; "false" opts out'),
    *(msgspec.structs.replace(key, named=True) for key in DATASET),
    Key("checkpoints", parse_destination, "URI that checkpoints are uploaded to"),
    Key("checkpoint-path", parse_path, "Directory in which the trainer writes them", CHECKPOINT_PATH),
    Key("checkpoint-size", parse_bytes, "Bytes of one checkpoint", "the policy's"),
    Key("keep-local", at_least(0), "Durable checkpoints that stay in memory", "1"),
    Key("keep-remote", at_least(1), "Commits that stay at the destination", "all"),
    Key("restore", parse_restore, "auto, latest, never, a checkpoint's name, or a URI", "auto"),
    Key("complete", parse_completion, "When one is whole: auto, or marked by the trainer", "auto"),
    Key("upload-limit", parse_bytes, "Bytes a second that checkpoints' uploads may take"),
    Key("lineage", parse_lineage, "Which attempts are the same training", "the owner's or the KFP step's"),
    Key("world", at_least(1), "Number of pods that train together: $(world)", "1"),
    Key("outputs", parse_destination, "URI that the output directory is uploaded to"),
    Key("output-path", parse_path, "Directory in which the trainer writes outputs", OUTPUT_PATH),
    Key("output-size", parse_bytes, "Bytes of all outputs", "the policy's"),
    Key("outputs-every", parse_seconds, "Time between uploads of outputs", "at the end"),
    *_access(""),
    *_access("dataset"),
    *_access("checkpoints"),
    *_access("outputs"),
    Key("shm-size", parse_bytes, "Size of the trainer's /dev/shm", "the policy's"),
    Key("grace", parse_seconds, "Time between the pod's deletion and its end", "computed"),
    Key("container", parse_container, "Name of the training container", "found"),
)
KEYS = {key.name: key for key in TABLE}
"""All keys by their names without the prefix, in the order in which they are documented."""


def split_key(name: str) -> tuple[str, str]:
    """A key without the prefix as key and dataset's name: `include.train` as `include` and `train`."""
    key, _, dataset = name.partition(".")
    return key, dataset


def known_keys(wishes: Iterable[str]) -> dict[str, Key]:
    """All keys that a pod with these wishes may have, `KEY.NAME` after `KEY` for each name in them.

    Args:
        wishes: What stands on the pod, without the prefix.
    """
    names = sorted({name for _, name in map(split_key, wishes) if NAME.fullmatch(name)})
    return {
        full: key
        for key in TABLE
        for full in (key.name, *(f"{key.name}.{name}" for name in names if key.named))
    }
