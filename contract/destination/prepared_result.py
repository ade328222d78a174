"""Results of conversions at a destination: which key names one, and the marker that makes it complete.

    <to>/<key>-<token>/…                              the files of one attempt
    <to>/.podferry/prepared/<key>-<number>.json       the marker, created last; the lowest valid number counts

The key is that of the source's content, the parameters and the command. An attempt that was killed has no
marker, so nothing refers to its folder. Of two at once the marker's conditional create lets one win. If the
files of a marker are gone or changed, the next number is used. Format 1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from podferry.contract.destination.private_names import PRIVATE
from podferry.contract.errors import InvalidSpec
from podferry.contract.versioned_json import decode_checksummed, encode_checksummed

FORMAT = 1
MARKERS = f"{PRIVATE}/prepared"
KEY_DIGITS = 32
"""Hexadecimal digits of a key: 128 bits."""


class PreparedResult(msgspec.Struct, frozen=True):
    """The marker of a result.

    Attributes:
        source: Frozen reference to what was converted.
        reference: Frozen reference to the result.
        parameters: Of the conversion.
        command: Of the conversion; empty for Python code.
        created: By the clock of the step, with time zone.
        format: Version of this document.
    """

    source: str
    reference: str
    parameters: dict[str, Any]
    command: tuple[str, ...]
    created: datetime
    format: int = FORMAT


def result_key(digest: str, parameters: Mapping[str, Any], command: Sequence[str] = ()) -> str:
    """The key of a result, the same for equal content, parameters and command.

    Raises:
        InvalidSpec: The parameters are not JSON.
    """
    try:
        data = msgspec.json.encode([digest, dict(parameters), list(command)], order="deterministic")
    except (TypeError, ValueError) as error:
        remedy = "Use texts, numbers, lists and dictionaries"
        raise InvalidSpec.of("the parameters are not JSON", str(error), remedy) from error
    return hashlib.sha256(data).hexdigest()[:KEY_DIGITS]


def marker_name(key: str, number: int) -> str:
    """The name of a marker, relative to the destination; numbers count from 1."""
    return f"{MARKERS}/{key}-{number}.json"


def encode_result(result: PreparedResult) -> bytes:
    """The marker as JSON with a checksum."""
    return encode_checksummed(result)


def decode_result(data: bytes, source: str) -> PreparedResult:
    """Read a marker; raises as `decode_checksummed`."""
    return decode_checksummed(data, PreparedResult, FORMAT, source)
