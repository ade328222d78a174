"""Unpacks one tar archive in a thread, while it streams.

Memory stays bounded for any archive: members are copied in pieces, and headers have a limit.
"""

from __future__ import annotations

import io
import tarfile

from podferry.contract.errors import Refused
from podferry.sidecar.archive.decompress import ForwardOnlyReader, Readable, decompress
from podferry.sidecar.archive.member_writer import COPY_BYTES, MemberReceiver, corrupt, library_errors
from podferry.sidecar.archive.unpack_rules import MAX_NAMES_SHOWN

PROBLEM_SCAN_BYTES = 64 << 20
"""Read after the first problem, to report others as well."""
REJECTED_TYPES = {
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.LNKTYPE: "a hard link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
}


def unpack_tar(writer: MemberReceiver, source: io.RawIOBase) -> None:
    """Read a tar archive to its end.

    Raises:
        Corrupt: It is damaged, cut off, or followed by other data.
        Refused: It contains members that must not be unpacked, as far as it was read, or exceeds the space
            budget.
    """
    with library_errors(writer.archive):
        file = ForwardOnlyReader(decompress(writer.archive.kind, source))
        _unpack_members(writer, file)
        Refused.raise_any(writer.problems[:MAX_NAMES_SHOWN])
        _check_end(writer, file)


def _unpack_members(writer: MemberReceiver, file: ForwardOnlyReader) -> None:
    until = None
    with tarfile.TarFile(fileobj=file.as_file(), errorlevel=2) as tar:
        while until is None or file.position < until:
            file.reset_header_limit()
            member = tar.next()
            if member is None:
                return
            tar.members.clear()  # type: ignore[attr-defined] # all headers so far: there may be millions
            _unpack_member(writer, tar, member, file)
            if writer.problems and until is None:
                until = file.position + PROBLEM_SCAN_BYTES


def _unpack_member(
    writer: MemberReceiver, tar: tarfile.TarFile, member: tarfile.TarInfo, file: ForwardOnlyReader
) -> None:
    if member.isdir() and member.name in {"", "."}:
        return
    allowed = member.isreg() or member.isdir()
    kind = "" if allowed else REJECTED_TYPES.get(member.type, f"a member of the unknown type {member.type!r}")
    if writer.reject(member.name, kind) or member.isdir() or writer.problems:
        return
    writer.budget.reserve(writer.archive, [member.size])
    source: Readable | None = tar.extractfile(member) if member.issparse() else file

    def read(size: int) -> bytes:
        file.reset_header_limit()
        return source.read(size) if source else b""

    writer.write(member.name, member.size, read)


def _check_end(writer: MemberReceiver, file: ForwardOnlyReader) -> None:
    """`tarfile` treats any invalid header as the end: a truncated archive would look complete."""
    if file.last_read != bytes(tarfile.BLOCKSIZE):
        found = (
            f"a broken header before byte {file.position:,}" if file.last_read else f"{file.position:,} bytes"
        )
        raise corrupt(writer.archive, f"{found}, and no end marker")
    file.reset_header_limit()
    while data := file.read(COPY_BYTES):
        if data.count(0) != len(data):
            raise corrupt(writer.archive, f"other data follows its end, before byte {file.position:,}")
        file.reset_header_limit()
