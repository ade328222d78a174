"""A store in memory, shipped for tests and dry runs, with faults that are scripted.

Every `memory://NAME` of one process is the same store. Faults are listed, not drawn: the first that fits a
call and has tries left is taken, so that a test says exactly what goes wrong and how often.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterable
from fnmatch import fnmatchcase

import msgspec

from podferry.contract.errors import AlreadyExists, Changed, Corrupt, NotFound
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.body import Source
from podferry.storage.limits import LIMITS, MIB
from podferry.storage.naming import checked_name, join
from podferry.storage.store import Body, WriteMode


class Fault(msgspec.Struct, frozen=True):
    """Something that goes wrong.

    Attributes:
        call: `entries`, `children`, `stat`, `read`, `write` or `delete`; `*` is any.
        pattern: Which names (of a listing: prefixes), as `fnmatch` has it; `*` crosses slashes.
        times: How many calls it strikes.
        error: Raised; a `BaseException` that is no `Exception` stands for the death of the process.
        after: The call has its effect before `error` is raised, as when a response is lost.
        skip: Calls that pass before it strikes.
        truncate: A read yields only this many bytes, a listing only so many entries.
        corrupt: The byte at this offset of what a read yields is inverted.
        wait: The call goes on when this is set.
    """

    call: str = "*"
    pattern: str = "*"
    times: int = 1
    error: BaseException | None = None
    after: bool = False
    skip: int = 0
    truncate: int | None = None
    corrupt: int | None = None
    wait: asyncio.Event | None = None


class Content:
    """What one name of a memory store holds, and what goes wrong there.

    Attributes:
        objects: Whole keys with their bytes.
        faults: Struck in order; append to it at any time.
        calls: Every call and its name, in order, those that failed included.
    """

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.faults: list[Fault] = []
        self.calls: list[tuple[str, str]] = []
        self._struck: dict[int, tuple[Fault, int]] = {}  # holds the fault, so that its id stays its own

    def fault(self, call: str, name: str) -> Fault | None:
        """The fault that this call meets, counted."""
        self.calls.append((call, name))
        for fault in self.faults:
            if fault.call in ("*", call) and fnmatchcase(name, fault.pattern):
                _, struck = self._struck.get(id(fault), (fault, 0))
                self._struck[id(fault)] = (fault, struck + 1)
                if fault.skip <= struck < fault.skip + fault.times:
                    return fault
        return None


CONTENTS: dict[str, Content] = {}
"""By the bucket of the URI."""


class MemoryStore:
    """Objects in a dictionary.

    Attributes:
        uri: Where it is opened.
        content: Shared by all stores of the same name, as are the `faults` in it.
    """

    exclusive_create = True

    def __init__(self, uri: Uri, content: Content | None = None) -> None:
        self.uri = uri
        self.content = CONTENTS.setdefault(uri.bucket, Content()) if content is None else content
        self.faults = self.content.faults

    async def entries(self, prefix: str = "") -> AsyncIterator[Entry]:
        """See `Store.entries`. The tag is the first 32 digits of the content's SHA-256."""
        fault = await self._before("entries", prefix)
        found = self._below(prefix)
        for name in found[: fault.truncate if fault else None]:
            data = self.content.objects.get(self._key(name))
            if data is not None:
                yield _entry(name, data)
        _after(fault)

    async def children(self, prefix: str = "") -> list[str]:
        """See `Store.children`."""
        fault = await self._before("children", prefix)
        rests = [name[len(prefix) + 1 if prefix else 0 :].partition("/") for name in self._below(prefix)]
        found = sorted({first + slash for first, slash, _ in rests})
        _after(fault)
        return found[: fault.truncate if fault else None]

    async def stat(self, name: str) -> Entry:
        """See `Store.stat`."""
        fault = await self._before("stat", checked_name(name))
        entry = _entry(name, self._object(name))
        _after(fault)
        return entry

    async def read(self, name: str, start: int = 0, length: int | None = None, tag: str = "") -> memoryview:
        """See `Store.read`; a fault may make it lie."""
        fault = await self._before("read", checked_name(name))
        data = self._object(name)
        if tag and _entry(name, data).tag != tag:
            raise Changed.of(
                f"{self.uri / name} is no longer the object that was listed", "", "List it again"
            )
        end = max(start, len(data)) if length is None else start + length
        if end > len(data):
            measured = f"{len(data)} bytes; asked for {end - start} from {start}"
            raise Corrupt.of(f"{self.uri / name} ends before the bytes that were asked for", measured)
        _after(fault)
        return memoryview(_damaged(data[start:end], fault))

    async def write(self, name: str, body: Body, mode: WriteMode = WriteMode.OVERWRITE) -> None:
        """See `Store.write`."""
        fault = await self._before("write", checked_name(name))
        source = Source(body, MIB, LIMITS.largest_object)
        data = bytearray()
        while part := await asyncio.to_thread(source.next_part):
            data += part
        key = self._key(name)
        if mode is WriteMode.CREATE and key in self.content.objects:
            raise AlreadyExists.of(f"{self.uri / name} exists already", "", "Choose another name")
        self.content.objects[key] = bytes(data)
        _after(fault)

    async def delete(self, names: Iterable[str]) -> None:
        """See `Store.delete`; each name is a call of its own to a fault."""
        for name in names:
            fault = await self._before("delete", checked_name(name))
            self.content.objects.pop(self._key(name), None)
            _after(fault)

    async def close(self) -> None:
        """Nothing is held; the content stays."""

    async def _before(self, call: str, name: str) -> Fault | None:
        fault = self.content.fault(call, name)
        if fault and fault.wait:
            await fault.wait.wait()
        if fault and fault.error and not fault.after:
            raise fault.error
        return fault

    def _key(self, name: str) -> str:
        return join(self.uri.key, name)

    def _names(self) -> dict[str, bytes]:
        start = self.uri.key + "/" if self.uri.key else ""
        return {
            key[len(start) :]: data for key, data in self.content.objects.items() if key.startswith(start)
        }

    def _below(self, prefix: str) -> list[str]:
        return sorted(name for name in self._names() if not prefix or name.startswith(prefix + "/"))

    def _object(self, name: str) -> bytes:
        try:
            return self.content.objects[self._key(name)]
        except KeyError:
            raise NotFound.of(f"there is no object {self.uri / name}", "", "Check the name") from None


def _entry(name: str, data: bytes) -> Entry:
    return Entry(name, len(data), hashlib.sha256(data).hexdigest()[:32])


def _after(fault: Fault | None) -> None:
    if fault and fault.error and fault.after:
        raise fault.error


def _damaged(data: bytes, fault: Fault | None) -> bytes:
    if fault is None:
        return data
    damaged = bytearray(data[: fault.truncate])
    if fault.corrupt is not None and fault.corrupt < len(damaged):
        damaged[fault.corrupt] ^= 0xFF
    return bytes(damaged)
