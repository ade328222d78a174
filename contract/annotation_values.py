"""Parses the values of annotations."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar

from podferry.contract.errors import InvalidSpec
from podferry.contract.file_names import name_problem
from podferry.contract.hidden_secrets import hide_in_location, hide_query
from podferry.contract.lazy_pattern import lazy_pattern
from podferry.contract.quantity import parse_bytes
from podferry.contract.spec import SHM, Completion, DatasetMode, Medium, Shard, Unpack
from podferry.contract.tmpfs_cost import PAGE_BYTES
from podferry.contract.uri import READ_ONLY_SCHEMES, Uri, parse_uri

RESTORE_WORDS = ("auto", "latest", "never")
RESTORE_MEANT = {
    **dict.fromkeys(("true", "yes", "on"), "auto"),
    **dict.fromkeys(("false", "no", "off"), "never"),
}
"""Words that would be names of checkpoints, and what they are meant to be."""
LABEL = lazy_pattern(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
"""DNS-1123 label. Source: RFC 1123, as Kubernetes uses it for names of containers."""
SUBDOMAIN = lazy_pattern(rf"{LABEL.pattern}(\.{LABEL.pattern})*")
ENDPOINT = lazy_pattern(r"https?://[^/?#@\\\x00-\x20\x7f]+(/[^?#\\\x00-\x20\x7f]*)?")
"""Some clients read a backslash as a slash, and so would see another host."""
REGION = lazy_pattern(r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?")
COUNT = lazy_pattern(r"\d{1,9}")
MILLI = lazy_pattern(r"[\d.]+m")
MODE = lazy_pattern(r"0?[0-7]{3}")
SHARD = lazy_pattern(r"(\d{1,9})/(\d{1,9})")
SYSTEM_DIRS = ("/dev", "/proc", "/sys")
E = TypeVar("E", bound=StrEnum)


def parse_bool(text: str) -> bool:
    """Parse `true` or `false`."""
    if text not in {"true", "false"}:
        raise InvalidSpec.of("neither true nor false", repr(text), 'Write "true" or "false"')
    return text == "true"


def parse_text(text: str) -> str:
    """Parse any text that is not empty."""
    if not text.strip():
        raise InvalidSpec.of("the value is empty", repr(text), "Write a value or remove the annotation")
    return text.strip()


def parse_size(text: str) -> int:
    """Parse whole bytes above zero; `512m`, which quantities allow, is half a byte and meant as `512Mi`.

    So is a number without a unit that is less than a page: nothing that a volume holds is as small.
    """
    if MILLI.fullmatch(text.strip()):
        remedy = f"Write {text.strip().removesuffix('m')}Mi"
        raise InvalidSpec.of("the suffix m means thousandths of a byte", repr(text), remedy)
    size = parse_bytes(text)
    if text.strip().isdecimal() and size < PAGE_BYTES:
        remedy = f"Write {text.strip()}Mi or {text.strip()}Gi"
        raise InvalidSpec.of("a number without a unit means bytes", repr(text), remedy)
    return size


def parse_path(text: str) -> str:
    """Parse an absolute, normalised directory that a volume may be mounted on."""
    text = text.strip()
    if not text.startswith("/") or ":" in text or any(ord(letter) < 32 for letter in text):
        raise InvalidSpec.of(
            "not a valid mount path", repr(text), f"Write an absolute path without ':', such as {SHM}/NAME"
        )
    normal = "/" + posixpath.normpath(text).lstrip("/")
    if normal != text:
        raise InvalidSpec.of("the path is not normalised", repr(text), f"Write {normal}")
    system = any(text == top or text.startswith(f"{top}/") for top in SYSTEM_DIRS)
    if text in {"/", SHM} or (system and not text.startswith(f"{SHM}/")):
        raise InvalidSpec.of("the path is reserved for the system", repr(text), f"Write a path below {SHM}")
    return text


def parse_destination(text: str) -> str:
    """Parse the URI of a store to write to, to its canonical text."""
    uri = _parse_plain(text)
    if uri.scheme in READ_ONLY_SCHEMES:
        remedy = "Choose another store, such as s3://BUCKET/PREFIX or a mounted directory"
        what = "a Hugging Face repository" if uri.scheme == "hf" else "a web server"
        raise InvalidSpec.of(f"{what} cannot be a destination ({uri.scheme}://)", repr(text), remedy)
    return str(uri)


def _parse_plain(text: str) -> Uri:
    if "#" in text:
        remedy = "Remove the # and what follows; write %23 if the key contains a #"
        raise InvalidSpec.of("a destination cannot have a fragment", repr(hide_in_location(text)), remedy)
    return parse_uri(text)


def parse_restore(text: str) -> str:
    """Parse `auto`, `latest`, `never`, a checkpoint's name, or a URI (to its canonical text)."""
    word = parse_text(text)
    if "://" in word or word.startswith("/"):
        return str(_parse_plain(word))
    if word not in RESTORE_WORDS and word.lower() in RESTORE_WORDS:
        raise InvalidSpec.of("the value must be lower case", repr(text), f"Write {word.lower()}")
    if word.lower() in RESTORE_MEANT:
        raise InvalidSpec.of("not a way to restore", repr(text), f"Write {RESTORE_MEANT[word.lower()]}")
    problem = name_problem(word)
    if problem:
        remedy = "Write auto, latest, never, a checkpoint's name or a URI"
        raise InvalidSpec.of(f"not a checkpoint's name: {problem.what}", repr(text), remedy)
    return word


def choice_parser(kind: type[E]) -> Callable[[str], E]:
    """A parser of the values of an enum."""
    *others, last = kind
    remedy = f"Write {', '.join(others)} or {last}"

    def parse(text: str) -> E:
        try:
            return kind(text.strip())
        except ValueError:
            raise InvalidSpec.of("unknown value", repr(text), remedy) from None

    return parse


parse_completion = choice_parser(Completion)
parse_unpack = choice_parser(Unpack)
parse_medium = choice_parser(Medium)
parse_dataset_mode = choice_parser(DatasetMode)


def parse_mode(text: str) -> int:
    """Parse permission bits in octal digits, as for `chmod`: `0644`."""
    digits = text.strip()
    if not MODE.fullmatch(digits) or not 0o400 & int(digits, 8):
        remedy = "Write octal digits from 0400 to 0777, such as 0644"
        raise InvalidSpec.of("not a file mode that lets the owner read", repr(text), remedy)
    return int(digits, 8)


def parse_shard(text: str) -> Shard:
    """Parse `RANK/COUNT`, with ranks from 0."""
    remedy = "Write RANK/COUNT with a rank from 0, such as 0/4, or $(rank)/$(world)"
    match = SHARD.fullmatch(text.strip())
    if match is None:
        raise InvalidSpec.of("not a shard", repr(text), remedy)
    rank, count = int(match[1]), int(match[2])
    if rank >= count:
        raise InvalidSpec.of("the shard's rank is not below its count", repr(text), remedy)
    return Shard(rank, count)


def parse_lineage(text: str) -> str:
    """Parse a lineage: one path segment."""
    # Imported here: a dataset has none, and `podferry dataset get` starts without what knows their forms.
    from podferry.contract.lineage import lineage_problem  # noqa: PLC0415

    InvalidSpec.raise_any(filter(None, [lineage_problem(text)]))
    return text


def parse_secret(text: str) -> str:
    """Parse the name of a Secret."""
    if len(text) > 253 or not SUBDOMAIN.fullmatch(text):
        remedy = "Write the name of a Secret in the pod's namespace: only a-z, 0-9, '-' and '.'"
        raise InvalidSpec.of("not a valid Secret name", repr(text), remedy)
    return text


def parse_namespace(text: str) -> str:
    """Parse the name of a namespace."""
    if not LABEL.fullmatch(text):
        remedy = "Write lower-case letters, digits and hyphens, 63 at most"
        raise InvalidSpec.of("not a name of a namespace", repr(text), remedy)
    return text


def parse_endpoint(text: str) -> str:
    """Parse the address of a service, without credentials and query."""
    text = text.strip(" ")
    if not ENDPOINT.fullmatch(text):
        remedy = "Write https://host:port or http://host:port"
        raise InvalidSpec.of("not an endpoint address", repr(hide_query(hide_in_location(text))), remedy)
    return text.rstrip("/")


def name_parser(pattern: re.Pattern[str], what: str, remedy: str) -> Callable[[str], str]:
    """A parser of names that match a pattern."""

    def parse(text: str) -> str:
        if not pattern.fullmatch(text):
            raise InvalidSpec.of(what, repr(text), remedy)
        return text

    return parse


parse_region = name_parser(REGION, "not a region name", "Write a name such as eu-central-1")
parse_container = name_parser(LABEL, "not a valid container name", "Write the name from the pod's spec")


def integer_parser(least: int) -> Callable[[str], int]:
    """A parser of integers of at least `least`."""

    def parse(text: str) -> int:
        digits = text.strip()
        if not COUNT.fullmatch(digits) or int(digits) < least:
            what = f"not an integer of {least} or more"
            raise InvalidSpec.of(what, repr(text), f"Write {least} or more")
        return int(digits)

    return parse
