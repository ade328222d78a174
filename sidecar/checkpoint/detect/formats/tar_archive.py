"""Tar archives, plain or compressed by gzip: `.tar`, `.tgz`, NeMo's `.nemo`.

Two blocks of zeros end them. Python's `with tarfile.open(…)` leaves these out when an exception ends it,
other programs may not. Source: POSIX.1-2017, pax, "ustar Interchange Format".
"""

from __future__ import annotations

import io
import itertools
import tarfile
from pathlib import Path
from typing import BinaryIO

from podferry.sidecar.checkpoint.detect.formats.compressed_stream import GZIP_BITS, GZIP_MAGIC, unpack
from podferry.sidecar.checkpoint.detect.formats.file_section import size_of
from podferry.sidecar.checkpoint.detect.formats.verdict import (
    INCONCLUSIVE,
    FormatVerdict,
    Inconclusive,
    Torn,
    incomplete,
    unproven,
)

MAX_MEMBERS = 5_000
"""Members to look at, which takes about half a second; more are inconclusive."""
END_BYTES = 2 * tarfile.BLOCKSIZE
NO_END = "its tar archive has no end yet"


def tar_verdict(path: Path) -> FormatVerdict:
    """Every member is whole; one may be missing.

    Raises:
        Torn: It has no end.
        Inconclusive: It is of another kind, or has too many members.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        if not path.stat().st_size:
            return incomplete("it is empty")
        if _starts_like_gzip(file):
            return _tar_in(io.BytesIO(unpack(file, GZIP_BITS)))
        return _tar_in(file)


def gzip_verdict(path: Path) -> FormatVerdict:
    """A stream has its end; a tar archive in it is looked at."""
    if path.name.endswith(".tar.gz"):
        return tar_verdict(path)
    with path.open("rb") as file:
        if not path.stat().st_size:
            return incomplete("it is empty")
        if _starts_like_gzip(file):
            unpack(file, GZIP_BITS)
    return INCONCLUSIVE


def _starts_like_gzip(file: BinaryIO) -> bool:
    head = file.read(len(GZIP_MAGIC))
    file.seek(0)
    return GZIP_MAGIC.startswith(head)


def _tar_in(file: BinaryIO) -> FormatVerdict:
    size = size_of(file)
    try:
        archive = tarfile.open(fileobj=file, mode="r:")  # noqa: SIM115 - it owns nothing
    except tarfile.ReadError:
        if size < tarfile.BLOCKSIZE:
            raise Torn(NO_END) from None
        raise Inconclusive from None
    try:
        members = list(itertools.islice(archive, MAX_MEMBERS + 1))
    except tarfile.ReadError:
        raise Torn(NO_END) from None
    except (ValueError, LookupError) as error:  # a damaged extended header
        raise Inconclusive from error
    if len(members) > MAX_MEMBERS:
        raise Inconclusive
    file.seek(archive.offset)
    end = file.read(END_BYTES)
    if len(end) < END_BYTES or any(end):
        raise Torn(NO_END)
    if size % tarfile.RECORDSIZE or _ends_with_zeros(file, members):
        return INCONCLUSIVE
    return unproven(tuple((one.name, one.size) for one in members))


def _ends_with_zeros(file: BinaryIO, members: list[tarfile.TarInfo]) -> bool:
    """Whether the last member may be cut short, and the zeros that end the archive pass for its end.

    A program that ends its archive whatever happens leaves that, or an archive of another size than planned.
    """
    last = next((one for one in reversed(members) if one.size), None)
    if last is None:
        return False
    length = min(last.size, tarfile.BLOCKSIZE)
    file.seek(last.offset_data + last.size - length)
    return not any(file.read(length))
