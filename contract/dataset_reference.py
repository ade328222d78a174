"""Parses dataset references: `URI#sha256=…&bytes=…&files=…`, frozen and sized.

The fragment is optional: a bare URI is the dataset as it is when it is read.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.manifest import Manifest
from podferry.contract.suggest import did_you_mean
from podferry.contract.uri import MAX_CACHED_LENGTH, Uri, parse_uri

DIGEST = re.compile(r"[0-9a-f]{64}")
FIELDS = {"sha256": DIGEST, "bytes": re.compile(r"\d{1,19}"), "files": re.compile(r"\d{1,15}")}


class Reference(msgspec.Struct, frozen=True):
    """A dataset's URI and, if it is frozen, its expected content.

    Attributes:
        uri: Its location.
        digest: The manifest's digest, None if the dataset is not frozen.
        bytes: Sum of the sizes, or None if unknown.
        files: Number of files, or None if unknown.
    """

    uri: Uri
    digest: str | None = None
    bytes: int | None = None
    files: int | None = None

    @property
    def frozen(self) -> bool:
        """Whether a digest pins the content."""
        return self.digest is not None

    def __str__(self) -> str:
        fields = {"sha256": self.digest, "bytes": self.bytes, "files": self.files}
        fragment = "&".join(f"{name}={value}" for name, value in fields.items() if value is not None)
        return f"{self.uri}#{fragment}" if fragment else str(self.uri)


def reference_to(manifest: Manifest) -> Reference:
    """The reference to a manifest's dataset."""
    return Reference(parse_uri(manifest.uri), manifest.digest, manifest.bytes, manifest.files)


def parse_reference(text: str) -> Reference:
    """Parse a URI with or without its fragment.

    Raises:
        InvalidSpec: Everything that is wrong.
    """
    return _parsed(text) if len(text) <= MAX_CACHED_LENGTH else _parsed.__wrapped__(text)


@lru_cache(maxsize=256)
def _parsed(text: str) -> Reference:
    location, _, fragment = text.partition("#")
    pairs = [pair.partition("=") for pair in fragment.split("&") if pair]
    problems = [problem for name, _, value in pairs for problem in _field_problems(name, value)]
    try:
        uri = parse_uri(location)
    except InvalidSpec as error:
        raise InvalidSpec(*error.problems, *problems) from error
    InvalidSpec.raise_any(problems)
    fields = {name: value for name, _, value in pairs}
    numbers = {name: int(fields[name]) for name in ("bytes", "files") if name in fields}
    return Reference(uri, fields.get("sha256"), numbers.get("bytes"), numbers.get("files"))


def _field_problems(name: str, value: str) -> list[Problem]:
    if name not in FIELDS:
        remedy = did_you_mean(name, FIELDS, f"Known: {', '.join(FIELDS)}")
        return [Problem("unknown field in the dataset reference", f"{name}={value}", remedy)]
    if not FIELDS[name].fullmatch(value):
        remedy = "Copy the reference as `podferry dataset freeze` printed it"
        return [Problem(f"{name} in the dataset reference is malformed", repr(value), remedy)]
    return []
