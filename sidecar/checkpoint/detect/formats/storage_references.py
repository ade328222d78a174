"""Which storages a torch pickle references, found by a tiny stack machine that loads nothing.

torch pickles each storage as a persistent id: a tuple of strings, the storage's class and its length. The
machine knows only the opcodes that build such a tuple; any other one makes what came before unknown.
Source: torch/serialization.py (`persistent_id` in `_save`), pickle.py of the standard library.
"""

from __future__ import annotations

import pickle
from typing import Final, NamedTuple

MAX_TEXT_BYTES = 64
"""Longer strings are no part of a storage's id."""
MAX_MEMO = 200_000
"""Values to remember; with more, references may be unknown."""
KEPT = 16
"""Values at the end of the stack to keep; an id has five."""
ITEM_BYTES = {
    b"BFloat16Storage": 2,
    b"BoolStorage": 1,
    b"ByteStorage": 1,
    b"CharStorage": 1,
    b"ComplexDoubleStorage": 16,
    b"ComplexFloatStorage": 8,
    b"DoubleStorage": 8,
    b"FloatStorage": 4,
    b"HalfStorage": 2,
    b"IntStorage": 4,
    b"LongStorage": 8,
    b"QInt32Storage": 4,
    b"QInt8Storage": 1,
    b"QUInt2x4Storage": 1,
    b"QUInt4x2Storage": 1,
    b"QUInt8Storage": 1,
    b"ShortStorage": 2,
    b"UntypedStorage": 1,
}
"""Size of one item in bytes. Source: torch/storage.py (`_dtype_to_storage_type_map`)."""


TEXTS = frozenset((pickle.BINUNICODE, pickle.SHORT_BINUNICODE, pickle.BINUNICODE8))
INTEGERS = {pickle.BININT: True, pickle.BININT1: False, pickle.BININT2: False, pickle.LONG1: True}
"""Opcodes, and whether their numbers have a sign."""
GETS, PUTS = frozenset((pickle.BINGET, pickle.LONG_BINGET)), frozenset((pickle.BINPUT, pickle.LONG_BINPUT))


class ClassName(NamedTuple):
    """A class that the pickle names, without its module."""

    name: bytes


class _Unknown:
    """A value that the machine does not follow."""


class _Mark:
    """Where a tuple begins."""


UNKNOWN: Final = _Unknown()
MARK: Final = _Mark()
Value = bytes | int | ClassName | tuple[object, ...] | _Unknown | _Mark


class StorageReferences:
    """Collects references while a pickle is walked.

    Attributes:
        sizes: Expected size of each storage in bytes, by key: from the first number up to, but not including,
            the second. torch rounds the length down to whole items.
        understood: Whether every persistent id was understood.
    """

    def __init__(self) -> None:
        self.sizes: dict[str, range] = {}
        self.understood = True
        self._stack: list[Value] = []
        self._memo: dict[int, Value] = {}
        self._memoized = 0
        self._actions = {
            pickle.FRAME: self._nothing,
            pickle.MARK: self._mark,
            pickle.MEMOIZE: self._memoize,
            pickle.TUPLE: self._tuple,
            pickle.GLOBAL: self._class,
            pickle.STACK_GLOBAL: self._class_from_stack,
            pickle.BINPERSID: self._persistent_id,
            pickle.PERSID: self._text_id,
        }

    def observe(self, code: bytes, argument: bytes) -> None:
        """Follow one opcode."""
        if code in TEXTS:
            short = 0 < len(argument) <= MAX_TEXT_BYTES
            self._push(argument if short else UNKNOWN)
        elif code in GETS:
            self._push(self._memo.get(int.from_bytes(argument, "little"), UNKNOWN))
        elif code in PUTS:
            self._remember(int.from_bytes(argument, "little"))
        elif code in INTEGERS:
            self._push(int.from_bytes(argument, "little", signed=INTEGERS[code]))
        elif code in self._actions:
            self._actions[code](argument)
        else:
            self._stack = [UNKNOWN]

    def _push(self, value: Value) -> None:
        self._stack.append(value)
        if len(self._stack) > 64 * KEPT:
            del self._stack[:-KEPT]

    def _pop(self) -> Value:
        return self._stack.pop() if self._stack else UNKNOWN

    def _remember(self, index: int) -> None:
        value = self._stack[-1] if self._stack else UNKNOWN
        if isinstance(value, bytes | ClassName) and len(self._memo) < MAX_MEMO:
            self._memo[index] = value
        else:
            self._memo.pop(index, None)

    def _memoize(self, _: bytes) -> None:
        self._remember(self._memoized)
        self._memoized += 1

    def _mark(self, _: bytes) -> None:
        self._push(MARK)

    def _tuple(self, _: bytes) -> None:
        values: list[object] = []
        while (value := self._pop()) is not MARK:
            values.append(value)
            if value is UNKNOWN:
                self._stack.clear()
                break
        self._push(UNKNOWN if UNKNOWN in values else tuple(reversed(values)))

    def _class(self, argument: bytes) -> None:
        self._push(ClassName(argument.partition(b"\n")[2]))

    def _class_from_stack(self, _: bytes) -> None:
        name, _module = self._pop(), self._pop()
        self._push(ClassName(name) if isinstance(name, bytes) else UNKNOWN)

    def _persistent_id(self, _: bytes) -> None:
        match self._pop():
            case (b"storage", ClassName(name), bytes(key), bytes(), int(length)) if name in ITEM_BYTES:
                item = ITEM_BYTES[name]
                self.sizes[key.decode("utf-8", "replace")] = range(length * item, (length + 1) * item)
            case _:
                self.understood = False
        self._push(UNKNOWN)

    def _nothing(self, _: bytes) -> None:
        """Opcodes without an effect on the stack."""

    def _text_id(self, _: bytes) -> None:
        self.understood = False
        self._push(UNKNOWN)
