"""Parses dataset references: `URI#sha256=…&bytes=…&files=…&include=…&exclude=…`, frozen and sized.

The fragment is optional: a bare URI is the dataset as it is when it is read. `include` and `exclude` are the
globs that were frozen with it, separated by commas, each percent-encoded: the digest is that of the selected
files, so who reads the reference selects the same ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import quote, unquote

import msgspec

from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.hidden_secrets import shown_value
from podferry.contract.lazy_pattern import lazy_pattern
from podferry.contract.manifest import Manifest
from podferry.contract.suggest import did_you_mean
from podferry.contract.uri import MAX_CACHED_LENGTH, Uri, parse_uri, refuse_password

DIGEST = lazy_pattern(r"[0-9a-f]{64}")
GLOBS = lazy_pattern(r"[^\s#&,]+(,[^\s#&,]+)*")
FIELDS = {
    "sha256": DIGEST,
    "bytes": re.compile(r"\d{1,19}"),
    "files": re.compile(r"\d{1,15}"),
    "include": GLOBS,
    "exclude": GLOBS,
}
SAFE_IN_GLOBS = "*?/!"
"""Left readable; all else is percent-encoded, such as `$` and braces, which other programs expand."""


class Reference(msgspec.Struct, frozen=True):
    """A dataset's URI and, if it is frozen, its expected content.

    Attributes:
        uri: Its location.
        digest: The manifest's digest, None if the dataset is not frozen.
        bytes: Sum of the sizes, or None if unknown.
        files: Number of files, or None if unknown.
        include: Globs of the files that it was frozen with; empty for all.
        exclude: Globs of the files that were left out.
    """

    uri: Uri
    digest: str | None = None
    bytes: int | None = None
    files: int | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @property
    def frozen(self) -> bool:
        """Whether a digest pins the content."""
        return self.digest is not None

    def __str__(self) -> str:
        fields = {
            "sha256": self.digest,
            "bytes": self.bytes,
            "files": self.files,
            "include": _encode_globs(self.include),
            "exclude": _encode_globs(self.exclude),
        }
        fragment = "&".join(f"{name}={value}" for name, value in fields.items() if value not in (None, ""))
        return f"{self.uri}#{fragment}" if fragment else str(self.uri)


def reference_to(manifest: Manifest, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> Reference:
    """The reference to a manifest's dataset, of which these globs selected the files."""
    uri = parse_uri(manifest.uri)
    return Reference(uri, manifest.digest, manifest.bytes, manifest.files, tuple(include), tuple(exclude))


def parse_reference(text: str) -> Reference:
    """Parse a URI with or without its fragment.

    Raises:
        InvalidSpec: Everything that is wrong.
    """
    return _parsed(text) if len(text) <= MAX_CACHED_LENGTH else _parsed.__wrapped__(text)


@lru_cache(maxsize=256)
def _parsed(text: str) -> Reference:
    if "://" in text:
        refuse_password(text)  # which may have a #
    location, _, fragment = text.partition("#")
    pairs = [pair.partition("=") for pair in fragment.split("&") if pair]
    problems = [problem for name, _, value in pairs for problem in _field_problems(name, value)]
    problems += _repeated_fields([name for name, _, _ in pairs])
    try:
        uri = parse_uri(location)
    except InvalidSpec as error:
        raise InvalidSpec(*error.problems, *problems) from error
    InvalidSpec.raise_any(problems)
    fields = {name: value for name, _, value in pairs}
    numbers = {name: int(fields[name]) for name in ("bytes", "files") if name in fields}
    include, exclude = (_decode_globs(fields.get(name, "")) for name in ("include", "exclude"))
    return Reference(uri, fields.get("sha256"), numbers.get("bytes"), numbers.get("files"), include, exclude)


def _field_problems(name: str, value: str) -> list[Problem]:
    if name not in FIELDS:
        known = f"Known: {', '.join(FIELDS)}; write %23 if the name contains a #"
        given = f"{name}={shown_value(name, value)}" if value else name
        return [Problem("unknown field in the dataset reference", given, did_you_mean(name, FIELDS, known))]
    if not FIELDS[name].fullmatch(value):
        remedy = "Copy the reference as `podferry dataset freeze` printed it"
        return [Problem(f"{name} in the dataset reference is malformed", repr(value), remedy)]
    return []


def _repeated_fields(names: Sequence[str]) -> list[Problem]:
    what, remedy = "a field of the dataset reference is given twice", "Give it once; commas separate globs"
    return [Problem(what, name, remedy) for name, count in Counter(names).items() if count > 1]


def _encode_globs(globs: Sequence[str]) -> str:
    # Names of files that are not UTF-8 have surrogates in Python.
    return ",".join(quote(glob, safe=SAFE_IN_GLOBS, errors="surrogateescape") for glob in globs)


def _decode_globs(text: str) -> tuple[str, ...]:
    return tuple(unquote(glob, errors="surrogateescape") for glob in text.split(",")) if text else ()
