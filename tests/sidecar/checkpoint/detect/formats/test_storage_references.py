import io
import pickle
import pickletools
from collections import OrderedDict

import pytest

from podferry.sidecar.checkpoint.detect.formats.pickle_walk import walk_pickles
from podferry.sidecar.checkpoint.detect.formats.storage_references import (
    ITEM_BYTES,
    KEPT,
    MAX_TEXT_BYTES,
    StorageReferences,
)

LONGEST_ID = 8
"""Opcodes of an id between its mark and its tuple, without the memo's."""


class FloatStorage:
    """Named like torch's class."""


class OtherStorage:
    """Unknown."""


class Storage:
    def __init__(self, *parts):
        self.parts = parts


class Pickler(pickle._Pickler):
    """Like torch's: storages become persistent ids."""

    def persistent_id(self, value):
        return ("storage", *value.parts) if isinstance(value, Storage) else None


class QuickPickler(pickle.Pickler):
    persistent_id = Pickler.persistent_id


def references(value, protocol=2, pickler=Pickler):
    data = io.BytesIO()
    pickler(data, protocol).dump(value)
    found, size = StorageReferences(), data.tell()
    data.seek(0)
    walk_pickles(data, size, found.observe)
    return found


def storage(key, length, kind=FloatStorage):
    return Storage(kind, key, "cpu", length)


@pytest.mark.parametrize("pickler", [Pickler, QuickPickler])
@pytest.mark.parametrize("protocol", range(2, 6))
def test_every_storage_is_found_with_its_size(protocol, pickler):
    shared = ["storage", "cpu", "0", "7", FloatStorage]
    lengths = {str(number): 10**number for number in range(11)}
    tensors = [storage(key, length) for key, length in lengths.items()]
    value = OrderedDict(
        a=tensors, b=[shared, tensors[0]], c={"0": (1, 2, 3, 4, 5), "text": "x" * 999}, d=[{}]
    )
    found = references([shared, value], protocol, pickler)
    assert found.understood
    assert found.sizes == {key: range(4 * length, 4 * length + 4) for key, length in lengths.items()}


@pytest.mark.parametrize("protocol", range(2, 6))
def test_many_storages_are_found(protocol):
    found = references([storage(str(number), number) for number in range(3000)], protocol)
    assert found.understood
    assert set(found.sizes) == {str(number) for number in range(3000)}


@pytest.mark.parametrize(
    "value",
    [
        storage("0", 1, OtherStorage),
        Storage("another id"),
        storage("0" * (MAX_TEXT_BYTES + 1), 1),
        storage("0", 1.5),
        storage(0, 1),
        Storage(FloatStorage, "0", "cpu", 1, None),
    ],
)
def test_an_unknown_id_is_said_to_be_not_understood(value):
    found = references([storage("a", 1), value])
    assert not found.understood
    assert set(found.sizes) == {"a"}


def test_a_text_id_is_not_understood():
    found = StorageReferences()
    data = b"P5\n."
    walk_pickles(io.BytesIO(data), len(data), found.observe)
    assert not found.understood


def test_memory_is_bounded():
    found = StorageReferences()
    for number in range(100_000):
        found.observe(pickle.BININT1, bytes([number % 256]))
    assert len(found._stack) <= 64 * KEPT + 1


def test_no_other_opcode_builds_an_id():
    """Every other opcode makes the stack unknown: a new Python may add another one."""
    assert max(opcode.proto for opcode in pickletools.opcodes) == 5
    assert LONGEST_ID < KEPT
    assert len(ITEM_BYTES) == 18
