"""Scripted faults of a memory store: listed, not random, so a test says exactly what fails and how often."""

from __future__ import annotations

import asyncio
from fnmatch import fnmatchcase

import msgspec


class Fault(msgspec.Struct, frozen=True):
    """A fault that calls meet.

    Attributes:
        call: `entries`, `children`, `stat`, `read`, `write`, `delete` or `copy`, or one of multipart uploads:
            `begin`, `send`, `complete`, `abort`; `*` matches any.
        pattern: Names that it strikes (of a listing the prefix, of a part `NAME#NUMBER`), as in `fnmatch`;
            `*` crosses slashes.
        times: Calls that it strikes.
        error: Raised; a `BaseException` that is not an `Exception` simulates the death of the process.
        after: The call takes effect before `error` is raised, as if a response were lost.
        skip: Matching calls that pass before it strikes.
        truncate: A read returns only this many bytes, a listing only this many entries.
        corrupt: Offset of a byte that is inverted in the result of a read, in a part or in a copy.
        forget: The upload is removed before the call, as by a lifecycle rule of the bucket.
        wait: The call continues when this event is set.
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

    def raise_after(self) -> None:
        """Raise the error if it is due after the effect."""
        if self.error and self.after:
            raise self.error

    def damaged(self, data: bytes | memoryview) -> bytes:
        """The bytes after this fault."""
        damaged = bytearray(data[: self.truncate])
        if self.corrupt is not None and self.corrupt < len(damaged):
            damaged[self.corrupt] ^= 0xFF
        return bytes(damaged)


NO_FAULT = Fault(times=0)
"""Met by calls that succeed."""


class PendingUpload(msgspec.Struct):
    """A multipart upload that is not complete; each part except the last has `part_bytes`."""

    key: str
    part_bytes: int
    parts: dict[int, bytes]


class Content:
    """What all memory stores of one name share.

    Attributes:
        objects: Bytes by complete key.
        uploads: Multipart uploads that are not complete, by identifier.
        faults: In the order in which they strike; tests append to it at any time.
        calls: All calls and their names, in order, including failed ones.
    """

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, PendingUpload] = {}
        self.faults: list[Fault] = []
        self.calls: list[tuple[str, str]] = []
        self._uploads_begun = 0
        self._strikes: dict[int, tuple[Fault, int]] = {}  # keeps the fault alive, so its id is not reused

    def fault(self, call: str, name: str) -> Fault:
        """Record a call, and return the fault that it meets."""
        self.calls.append((call, name))
        for fault in self.faults:
            if fault.call in ("*", call) and fnmatchcase(name, fault.pattern):
                _, strikes = self._strikes.get(id(fault), (fault, 0))
                self._strikes[id(fault)] = (fault, strikes + 1)
                if fault.skip <= strikes < fault.skip + fault.times:
                    return fault
        return NO_FAULT

    def begin_upload(self, key: str, part_bytes: int) -> str:
        """Start a multipart upload, and return its identifier."""
        self._uploads_begun += 1
        self.uploads[f"upload-{self._uploads_begun}"] = PendingUpload(key, part_bytes, {})
        return f"upload-{self._uploads_begun}"

    async def meet(self, call: str, name: str) -> Fault:
        """Start a call: wait if its fault says so, raise an error that is due before the effect."""
        fault = self.fault(call, name)
        if fault.wait:
            await fault.wait.wait()
        if fault.error and not fault.after:
            raise fault.error
        return fault
