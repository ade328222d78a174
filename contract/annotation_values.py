"""How the values of annotations are parsed."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar

from podferry.contract.errors import InvalidSpec
from podferry.contract.file_names import name_problem
from podferry.contract.lineage import lineage_problem
from podferry.contract.spec import (
    SHM,
    Completion,
    Medium,
    Shard,
    Unpack,
)
from podferry.contract.uri import parse_uri

RESTORE_WORDS = ("auto", "latest", "never")


LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
"""DNS-1123 label, source: RFC 1123 as Kubernetes uses it for the names of containers."""


SUBDOMAIN = re.compile(rf"{LABEL.pattern}(\.{LABEL.pattern})*")


ENDPOINT = re.compile(r"https?://[^/?#\s@]+(/[^?#\s]*)?")


REGION = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?")


COUNT = re.compile(r"\d{1,9}")


MODE = re.compile(r"0?[0-7]{3}")


SHARD = re.compile(r"(\d{1,9})/(\d{1,9})")


SYSTEM_DIRS = ("/dev", "/proc", "/sys")


E = TypeVar("E", bound=StrEnum)


def parse_bool(text: str) -> bool:
    """`true` or `false`."""
    if text not in {"true", "false"}:
        raise InvalidSpec.of("neither true nor false", repr(text), 'Write "true" or "false"')
    return text == "true"


def parse_text(text: str) -> str:
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
    system = any(text == top or text.startswith(f"{top}/") for top in SYSTEM_DIRS)
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
    word = parse_text(text)
    if "://" in word or word.startswith("/"):
        return parse_destination(word)
    if word not in RESTORE_WORDS and word.lower() in RESTORE_WORDS:
        raise InvalidSpec.of("the word is written in lower case", repr(text), f"Write {word.lower()}")
    problem = name_problem(word)
    if problem:
        remedy = "Write auto, latest, never, a checkpoint's name or a URI"
        raise InvalidSpec.of(f"no checkpoint to restore: {problem.what}", repr(text), remedy)
    return word


def parse_choice(kind: type[E]) -> Callable[[str], E]:
    """A parser of the words of `kind`."""
    *others, last = kind
    words = f"{', '.join(others)} or {last}"

    def parse(text: str) -> E:
        try:
            return kind(text.strip())
        except ValueError:
            raise InvalidSpec.of(f"none of {words}", repr(text), f"Write {words}") from None

    return parse


parse_completion = parse_choice(Completion)


parse_unpack = parse_choice(Unpack)


parse_medium = parse_choice(Medium)


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


def parse_integer(least: int) -> Callable[[str], int]:
    """A parser of whole numbers from `least` on."""

    def parse(text: str) -> int:
        if not COUNT.fullmatch(text.strip()) or int(text) < least:
            raise InvalidSpec.of(f"no whole number of {least} or more", repr(text), f"Write {least} or more")
        return int(text)

    return parse
