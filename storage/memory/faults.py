"""What goes wrong in a memory store: listed, not drawn, so that a test says exactly what and how often."""

from __future__ import annotations

import asyncio
from fnmatch import fnmatchcase

import msgspec


class Fault(msgspec.Struct, frozen=True):
    """Something that goes wrong.

    Attributes:
        call: `entries`, `children`, `stat`, `read`, `write` or `delete`, or one of uploads in parts:
            `begin`, `send`, `complete`, `abort`; `*` is any.
        pattern: Which names (of a listing: prefixes; of a part: `NAME#NUMBER`), as `fnmatch` has it; `*`
            crosses slashes.
        times: How many calls it strikes.
        error: Raised; a `BaseException` that is no `Exception` stands for the death of the process.
        after: The call has its effect before `error` is raised, as when a response is lost.
        skip: Calls that pass before it strikes.
        truncate: A read yields only this many bytes, a listing only so many entries.
        corrupt: The byte at this offset of what a read yields, or a part brings, is inverted.
        forget: The upload is swept before the call, as by a rule of the bucket's lifecycle.
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
    forget: bool = False
    wait: asyncio.Event | None = None

    def ends(self) -> None:
        """Raise what is due after the effect."""
        if self.error and self.after:
            raise self.error

    def damaged(self, data: bytes | memoryview) -> bytes:
        """The bytes as they come out of it."""
        damaged = bytearray(data[: self.truncate])
        if self.corrupt is not None and self.corrupt < len(damaged):
            damaged[self.corrupt] ^= 0xFF
        return bytes(damaged)


NO_FAULT = Fault(times=0)
"""What a call meets that goes well."""


class PendingUpload(msgspec.Struct):
    """An upload in parts that is not complete.

    Attributes:
        key: Of the object that it is for.
        part_bytes: Size of each part but the last.
        parts: By their numbers.
    """

    key: str
    part_bytes: int
    parts: dict[int, bytes]


class Content:
    """What one name of a memory store holds, and what goes wrong there.

    Attributes:
        objects: Whole keys with their bytes.
        uploads: Those in parts that are not complete, by what names them.
        faults: Struck in order; append to it at any time.
        calls: Every call and its name, in order, those that failed included.
    """

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, PendingUpload] = {}
        self.faults: list[Fault] = []
        self.calls: list[tuple[str, str]] = []
        self._begun = 0
        self._struck: dict[int, tuple[Fault, int]] = {}  # holds the fault, so that its id stays its own

    def fault(self, call: str, name: str) -> Fault:
        """The fault that this call meets, counted."""
        self.calls.append((call, name))
        for fault in self.faults:
            if fault.call in ("*", call) and fnmatchcase(name, fault.pattern):
                _, struck = self._struck.get(id(fault), (fault, 0))
                self._struck[id(fault)] = (fault, struck + 1)
                if fault.skip <= struck < fault.skip + fault.times:
                    return fault
        return NO_FAULT

    def hold(self, key: str, part_bytes: int) -> str:
        """Begin an upload; what names it."""
        self._begun += 1
        self.uploads[f"upload-{self._begun}"] = PendingUpload(key, part_bytes, {})
        return f"upload-{self._begun}"

    async def meet(self, call: str, name: str) -> Fault:
        """Begin a call: its fault, after it has waited and unless it is raised at once."""
        fault = self.fault(call, name)
        if fault.wait:
            await fault.wait.wait()
        if fault.error and not fault.after:
            raise fault.error
        return fault
