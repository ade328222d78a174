"""Unpacks one tar archive aside, in a thread, while it streams.

Whatever an archive claims, memory stays bounded: members are copied in pieces, and headers have a limit.
"""

from __future__ import annotations

import io
import tarfile

from podferry.contract.errors import Refused
from podferry.sidecar.archive.decompress import ForwardOnlyReader, Readable, decompressed
from podferry.sidecar.archive.member_writer import CHUNK, MemberWriter, broken, whole
from podferry.sidecar.archive.rules import MAX_NAMES_SHOWN

LOOK_ON = 64 << 20
"""Bytes that are read on after a first problem to name others as well."""
KINDS = {
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.LNKTYPE: "a hard link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
}


def unpack_tar(aside: MemberWriter, source: io.RawIOBase) -> None:
    """Read a tar archive to its end.

    Raises:
        Corrupt: It is damaged, cut off, or followed by something else.
        Refused: It holds what must not be unpacked, as far as it was read, or more than there is room for.
    """
    with whole(aside.archive):
        file = ForwardOnlyReader(decompressed(aside.archive.kind, source))
        _members(aside, file)
        Refused.raise_any(aside.problems[:MAX_NAMES_SHOWN])
        _ends(aside, file)


def _members(aside: MemberWriter, file: ForwardOnlyReader) -> None:
    until = None
    with tarfile.TarFile(fileobj=file.as_file(), errorlevel=2) as tar:
        while until is None or file.tell() < until:
            file.allow()
            member = tar.next()
            if member is None:
                return
            tar.members.clear()  # type: ignore[attr-defined] # all headers so far: there may be millions
            _member(aside, tar, member, file)
            if aside.problems and until is None:
                until = file.tell() + LOOK_ON


def _member(
    aside: MemberWriter, tar: tarfile.TarFile, member: tarfile.TarInfo, file: ForwardOnlyReader
) -> None:
    if member.isdir() and member.name in {"", "."}:
        return
    known = member.isreg() or member.isdir()
    kind = "" if known else KINDS.get(member.type, f"a member of the unknown type {member.type!r}")
    if aside.refuse(member.name, kind) or member.isdir() or aside.problems:
        return
    aside.room([member.size])
    source: Readable | None = tar.extractfile(member) if member.issparse() else file

    def read(size: int) -> bytes:
        file.allow()
        return source.read(size) if source else b""

    aside.write(member.name, member.size, read)


def _ends(aside: MemberWriter, file: ForwardOnlyReader) -> None:
    """`tarfile` takes whatever is no header for the end: a cut archive would look whole."""
    if file.last != bytes(tarfile.BLOCKSIZE):
        found = f"a broken header before byte {file.tell():,}" if file.last else f"{file.tell():,} bytes"
        raise broken(aside.archive, f"{found}, and no mark of its end")
    file.allow()
    while data := file.read(CHUNK):
        if data.count(0) != len(data):
            raise broken(aside.archive, f"something follows its end, before byte {file.tell():,}")
        file.allow()
