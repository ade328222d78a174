from __future__ import annotations

import gzip
import io

import pytest

from podferry.sidecar.archive.decompress import ForwardOnlyReader, MalformedError
from podferry.sidecar.fetch.byte_stream import MAX_READ_BYTES
from tests.support.archive_site import SMALL_TAR


@pytest.mark.parametrize("pieces", [[SMALL_TAR[:700], SMALL_TAR[700:]], [SMALL_TAR, bytes(9000)]])
async def test_gzip_of_several_members_and_padding_are_one_archive(site, pieces):
    site.put("x.tgz", b"".join(map(gzip.compress, pieces)) + bytes(512))
    await site.start()
    assert site.held() == {"a": b"1" * 600, "b": b"2" * 600}


def test_a_reader_only_moves_forward():
    reader = ForwardOnlyReader(io.BytesIO(b"0123456789"), 100)
    assert (reader.read(3), reader.tell(), reader.last_read) == (b"012", 103, b"012")
    assert (reader.seek(105), reader.read(2)) == (105, b"56")
    with pytest.raises(MalformedError, match="from byte 107 back to 106"):
        reader.seek(106)
    assert reader.seek(200) == 110


def test_each_member_may_read_limited_headers():
    reader = ForwardOnlyReader(io.BytesIO(bytes(3 * MAX_READ_BYTES)))
    reader.read(MAX_READ_BYTES)
    with pytest.raises(MalformedError, match="the headers of a member"):
        reader.read(1)
    reader.reset_header_limit()
    assert len(reader.read(MAX_READ_BYTES)) == MAX_READ_BYTES
    with pytest.raises(MalformedError):
        reader.read(-1)
