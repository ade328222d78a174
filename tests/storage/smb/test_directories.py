"""Listings that break off, have no end, or impossible names."""

import struct
from types import SimpleNamespace

import pytest

from podferry.contract.errors import Corrupt
from podferry.contract.uri import parse_uri
from podferry.storage.smb.directories import Lister
from podferry.storage.smb.messages import Response
from podferry.storage.smb.nt_status import ACCESS_DENIED, NO_MORE_FILES, StatusError

URI = parse_uri("smb://nas/share/d")
CREATED = struct.pack("<HBBIQQQQQQII16sII", 89, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x10, 0, b"h" * 16, 0, 0)


def listing(name):
    sent = name.encode("utf-16-le")
    data = struct.pack("<IIQQQQQQIIIIQ", 0, 0, 0, 0, 1, 0, 5, 0, 0x20, len(sent), 0, 0, 7) + sent
    return 0, struct.pack("<HHI", 9, 72, len(data)) + data


class Directory:
    """A share whose directory answers with these; the last one comes again and again."""

    def __init__(self, *answers):
        self.answers, self.max_payload, self.closed = list(answers), 1 << 20, False
        self.connection, self.negotiated = self, SimpleNamespace(max_list=1 << 20)

    async def call(self, *requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        names = {5: (0, CREATED), 6: (0, bytes(60))}
        self.closed |= request.command == 6
        found = names.get(request.command)
        if found is None:
            found = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        return Response(found[0], memoryview(bytes(64) + found[1]))


END = (NO_MORE_FILES, b"")


async def test_all_parts_of_a_listing():
    share = Directory(listing("a"), listing("b"), END)
    found = await Lister(URI).read(share, "", "d")
    assert [entry.name for entry in found.entries] == ["a", "b"]
    assert share.closed


async def test_a_listing_that_breaks_off_is_an_error():
    share = Directory(listing("a"), (ACCESS_DENIED, b""))
    with pytest.raises(StatusError, match="ACCESS_DENIED"):
        await Lister(URI).read(share, "", "d")
    assert share.closed


async def test_a_listing_without_end_is_an_error():
    share = Directory(listing("a"))
    with pytest.raises(Corrupt, match=r"no end.*over 10 names"):
        await Lister(URI, max_listed=10).read(share, "", "d")
    assert share.closed


@pytest.mark.parametrize("name", ["a/b", "..\\x", "nul\0l"])
async def test_an_impossible_name_is_an_error(name):
    with pytest.raises(Corrupt, match="impossible name"):
        await Lister(URI).read(Directory(listing(name), END), "", "d")
