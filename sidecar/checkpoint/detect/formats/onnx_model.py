"""ONNX models: whether the graph has its end and its external data exists. Later fields may be missing.

Source: onnx/onnx.proto (`ModelProto`, `GraphProto`, `TensorProto`, `StringStringEntryProto`), and
protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

from podferry.sidecar.checkpoint.detect.formats.file_section import position_in, read_exactly, size_of
from podferry.sidecar.checkpoint.detect.formats.verdict import INCONCLUSIVE, FormatVerdict, Inconclusive, Torn

MAX_FIELDS = 300_000
"""Fields to walk, which takes about a second."""
GRAPH, OPSET, INITIALIZER, EXTERNAL_DATA, KEY, VALUE = 7, 8, 5, 13, 1, 2
FIRST_BYTE = b"\x08"
"""Of the field `ir_version`, which comes first."""
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
WIDTHS = {FIXED64: 8, FIXED32: 4}
MAX_TEXT_BYTES = 4096
NO_END = "its model has no end yet"


class _Field(NamedTuple):
    """A field of a message; its content, if it has a length, is between `start` and `end`."""

    number: int
    start: int
    end: int


def onnx_verdict(path: Path) -> FormatVerdict:
    """No field is cut short, graph and operator set are there, and external data is where the graph says.

    Raises:
        Torn: One of these is not so.
        Inconclusive: It is of another kind, or has more than `MAX_FIELDS`.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        size = size_of(file)
        if not size:
            raise Torn("it is empty")
        if file.read(1) != FIRST_BYTE:
            raise Inconclusive
        file.seek(0)
        try:
            needed = _walk_model(file, size)
        except EOFError:
            raise Torn(NO_END) from None
    for location, end in needed.items():
        _check_external(path.parent, location, end)
    return INCONCLUSIVE


def _walk_model(file: BinaryIO, size: int) -> Mapping[str, int]:
    """Names of the files with external data, and the bytes that each must have."""
    budget, numbers, needed = iter(range(MAX_FIELDS)), set(), dict[str, int]()
    for field in _fields(file, size, budget):
        numbers.add(field.number)
        if field.number == GRAPH:
            for location, end in _external_data(file, field, budget):
                needed[location] = max(end, needed.get(location, 0))
    if not numbers >= {GRAPH, OPSET}:
        raise Torn(NO_END)
    return needed


def _external_data(file: BinaryIO, graph: _Field, budget: Iterator[int]) -> Iterator[tuple[str, int]]:
    for field in _fields(file, graph.end, budget):
        if field.number == INITIALIZER:
            entries = _entries(file, field, budget)
            if "location" in entries:
                yield entries["location"], _number(entries, "offset") + _number(entries, "length")


def _entries(file: BinaryIO, tensor: _Field, budget: Iterator[int]) -> dict[str, str]:
    """The keys and values that say where a tensor's data is."""
    found = {}
    for field in _fields(file, tensor.end, budget):
        if field.number == EXTERNAL_DATA:
            texts = {part.number: _text(file, part) for part in _fields(file, field.end, budget)}
            found[texts.get(KEY, "")] = texts.get(VALUE, "")
    return found


def _number(entries: Mapping[str, str], key: str) -> int:
    text = entries.get(key, "0")
    if not text.isascii() or not text.isdecimal():
        raise Inconclusive
    return int(text)


def _text(file: BinaryIO, field: _Field) -> str:
    if field.end - field.start > MAX_TEXT_BYTES:
        raise Inconclusive
    return read_exactly(file, field.end - field.start).decode("utf-8", "replace")


def _fields(file: BinaryIO, end: int, budget: Iterator[int]) -> Iterator[_Field]:
    """The fields of a message from the current position on; the position is at each field's content."""
    while position_in(file) < end:
        if next(budget, None) is None:
            raise Inconclusive
        number, wire = divmod(_varint(file), 8)
        if wire == VARINT:
            _varint(file)
        elif wire not in WIDTHS and wire != BYTES:
            raise Inconclusive
        length = _varint(file) if wire == BYTES else WIDTHS.get(wire, 0)
        field = _Field(number, position_in(file), position_in(file) + length)
        if field.end > end:
            raise EOFError
        yield field
        file.seek(field.end)


def _varint(file: BinaryIO) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = read_exactly(file, 1)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
    raise Inconclusive


def _check_external(folder: Path, location: str, end: int) -> None:
    if "\0" in location or location.startswith("/") or ".." in location.split("/"):
        raise Inconclusive  # ONNX itself refuses these
    try:
        size = (folder / location).stat().st_size
    except FileNotFoundError:
        raise Torn(f"its data file {location} is missing") from None
    if size < end:
        raise Torn(f"its data file {location} has {size} bytes, the model needs {end}")
