"""Codec of versioned JSON documents: checks the format number first, then decodes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar

import msgspec

from podferry.contract.errors import Corrupt, FormatTooNew
from podferry.contract.lazy_pattern import lazy_pattern

T = TypeVar("T")
CHECKSUM_FIELD = lazy_pattern(rb',\n "sha256": "([0-9a-f]{64})"\n}\Z')
"""The last field of a checksummed document: the SHA-256 of everything before its comma."""


_LOCK = Lock()
_DECODERS: dict[type, msgspec.json.Decoder[Any]] = {}


class _Versioned(msgspec.Struct):
    format: int


def decode_document(data: bytes, kind: type[T], newest: int, source: str) -> T:
    """Decode a versioned JSON document; fields that a later minor version added are ignored.

    Args:
        data: UTF-8 JSON of an object with an integer `format`.
        kind: Its type.
        newest: The newest format that this podferry reads.
        source: Its origin, for messages.

    Raises:
        FormatTooNew: Its format is above `newest`.
        Corrupt: Not such a document.
    """
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__).lower()
    try:
        version = _decoder(_Versioned).decode(data).format
        if version > newest:
            what = f"the {name} {source} was written by a later podferry"
            measured = f"format {version}, this podferry reads up to {newest}"
            raise FormatTooNew.of(what, measured, "Upgrade podferry")
        return _decoder(kind).decode(data)
    except msgspec.MsgspecError as error:
        remedy = "Restore the document or write it again"
        raise Corrupt.of(f"{source} is not a valid {name}", str(error), remedy) from error


def _decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """The decoder of a class, made by one thread.

    At the first use of a class, msgspec 0.22 collects its fields. A second thread that decodes it meanwhile
    ends the process: segmentation fault.
    """
    found = _DECODERS.get(kind)
    if found is None:
        with _LOCK:
            found = _DECODERS[kind] = msgspec.json.Decoder(kind)
    return found


def document_decoder(kind: type[T], newest: int, *, checksummed: bool = False) -> Callable[[bytes, str], T]:
    """A decoder of one kind of document, called with (data, source); raises as `decode_document`."""
    decode_kind = decode_checksummed if checksummed else decode_document

    def decode(data: bytes, source: str) -> T:
        return decode_kind(data, kind, newest, source)

    return decode


def encode_json(document: msgspec.Struct) -> bytes:
    """JSON of a document, even if a name in it is not UTF-8: such bytes become question marks."""
    try:
        return msgspec.json.encode(document)
    except UnicodeEncodeError:
        import json  # noqa: PLC0415 - for nearly no document

        return json.dumps(msgspec.to_builtins(document), ensure_ascii=False).encode(errors="replace")


def encode_document(document: msgspec.Struct) -> bytes:
    """Indented JSON, readable in a bucket's browser."""
    return msgspec.json.format(encode_json(document), indent=1)


def encode_checksummed(document: msgspec.Struct) -> bytes:
    """Indented JSON, readable in a bucket's browser, with the SHA-256 of everything before the checksum.

    A bit flipped in transit, in a name or a number, would often leave a valid document.
    """
    body = encode_document(document).removesuffix(b"\n}")
    return body + b',\n "sha256": "' + hashlib.sha256(body).hexdigest().encode() + b'"\n}'


def decode_checksummed(data: bytes, kind: type[T], newest: int, source: str) -> T:
    """Like `decode_document`, and verify the checksum.

    Raises:
        FormatTooNew: Its format is above `newest`.
        Corrupt: Not such a document, or its checksum is missing or wrong.
    """
    checksum = CHECKSUM_FIELD.search(data)
    if checksum is not None and hashlib.sha256(data[: checksum.start()]).hexdigest().encode() != checksum[1]:
        raise _damaged(source, "its bytes do not match its sha256")
    found = decode_document(data, kind, newest, source)
    if checksum is None:
        raise _damaged(source, "its sha256 is missing or misplaced")
    return found


def _damaged(source: str, measured: str) -> Corrupt:
    return Corrupt.of(f"{source} is damaged", measured, "Restore the document from a copy")
