from __future__ import annotations

import gzip
import tarfile

from podferry.contract.errors import Corrupt
from podferry.sidecar.fetch.byte_stream import MAX_READ_BYTES
from tests.support.archive_site import refused, special, tar_of


async def test_a_tar_of_the_current_directory_is_unpacked(site):
    members = [(special("./", tarfile.DIRTYPE), b""), (special("./a", tarfile.DIRTYPE), b""), ("./a/b", b"1")]
    site.put("x.tar", tar_of(members))
    await site.start()
    assert site.held() == {"a/b": b"1"}


async def test_a_sparse_file_is_unpacked_with_its_holes(site):
    # GNU's old format: 3 bytes at 0 and 2 bytes at 70,000, of 70,002.
    info = tarfile.TarInfo("holes")
    info.type, info.size = tarfile.GNUTYPE_SPARSE, 5
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[386:482] = b"".join(b"%011o\0%011o\0" % pair for pair in ((0, 3), (70_000, 2))).ljust(96, b"\0")
    header[482:483], header[483:495] = b"\0", b"%011o\0" % 70_002
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    site.put("x.tar", bytes(header) + b"abcde".ljust(512, b"\0") + bytes(1024))
    await site.start()
    assert site.held() == {"holes": b"abc" + bytes(69_997) + b"de"}


SPECIAL = [
    (special("l", tarfile.SYMTYPE, "/etc/passwd"), "a symbolic link"),
    (special("h", tarfile.LNKTYPE, "a"), "a hard link"),
    (special("c", tarfile.CHRTYPE), "a device"),
    (special("b", tarfile.BLKTYPE), "a device"),
    (special("p", tarfile.FIFOTYPE), "a pipe"),
    (special("v", b"V"), "unknown type"),
]


async def test_all_members_that_are_not_files_are_reported_together(site):
    site.put("x.tar.gz", gzip.compress(tar_of([("good", b"1"), *((header, b"") for header, _ in SPECIAL)])))
    error = await refused(site)
    assert len(error.problems) == len(SPECIAL)
    for (header, words), problem in zip(SPECIAL, error.problems, strict=True):
        assert words in problem.what
        assert repr(header.name) == problem.measured


async def test_headers_that_need_too_much_memory_are_refused(site):
    """A name of 200 MiB costs 200 KiB to send, and a library reads it at once."""
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 200 << 20
    data = info.tobuf(tarfile.GNU_FORMAT) + b"n" * (MAX_READ_BYTES + 1)
    site.put("x.tar.gz", gzip.compress(data))
    assert "the headers of a member take more" in str(await refused(site, Corrupt))
