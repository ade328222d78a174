"""Reading our own JSON documents: the format's version first, then the rest."""

from __future__ import annotations

import hashlib
import re
from typing import TypeVar

import msgspec

from podferry.contract.errors import Corrupt, FormatTooNew, Problem

T = TypeVar("T")
CHECKSUM_FIELD = re.compile(rb',\n "sha256": "([0-9a-f]{64})"\n}\Z')
"""The last field of a sealed document: the SHA-256 of all before its comma."""


class _Versioned(msgspec.Struct):
    format: int


def decode_document(data: bytes, kind: type[T], newest: int, source: str) -> T:
    """Decode a versioned JSON document; fields that a later minor version added are ignored.

    Args:
        data: UTF-8 JSON of an object with an integer `format`.
        kind: What it should be.
        newest: The newest format that this podferry reads.
        source: Where it came from, for messages.

    Raises:
        FormatTooNew: Its format is above `newest`.
        Corrupt: It is no such document.
    """
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__).lower()
    try:
        version = msgspec.json.decode(data, type=_Versioned).format
        if version > newest:
            problem = Problem(
                f"the {name} {source} was written by a later podferry",
                f"format {version}, this podferry reads up to {newest}",
                "Upgrade podferry",
            )
            raise FormatTooNew(problem)
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise Corrupt.of(
            f"{source} is not a valid {name}", str(error), "Restore the document or write it again"
        ) from error


def encode_checksummed(document: msgspec.Struct) -> bytes:
    """Indented JSON, as people read it in a bucket's browser, with the SHA-256 of what stands before it.

    A bit that flips on the way in a name or a number would often leave a document that can be read.
    """
    body = msgspec.json.format(msgspec.json.encode(document), indent=1).removesuffix(b"\n}")
    return body + b',\n "sha256": "' + hashlib.sha256(body).hexdigest().encode() + b'"\n}'


def decode_checksummed(data: bytes, kind: type[T], newest: int, source: str) -> T:
    """As `decode_document`, for one that is sealed.

    Raises:
        FormatTooNew: Its format is above `newest`.
        Corrupt: It is no such document, or not as it was written.
    """
    seal = CHECKSUM_FIELD.search(data)
    if seal is not None and hashlib.sha256(data[: seal.start()]).hexdigest().encode() != seal[1]:
        raise _broken(source, "its bytes do not give its sha256")
    found = decode_document(data, kind, newest, source)
    if seal is None:
        raise _broken(source, "its sha256 is missing or misplaced")
    return found


def _broken(source: str, measured: str) -> Corrupt:
    return Corrupt.of(f"{source} is not as it was written", measured, "Restore the document from a copy")
