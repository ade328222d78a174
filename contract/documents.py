"""Reading our own JSON documents: the format's version first, then the rest."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from podferry.contract.errors import Corrupt, FormatTooNew, Problem

T = TypeVar("T")


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
    name = kind.__name__.lower()
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
            f"{source} is no {name}", str(error), "Restore the document or write it anew"
        ) from error
