"""Listings and names, as servers send them and as broken ones might."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.storage.smb import information as i
from podferry.storage.smb.messages import Attributes, Response
from podferry.storage.smb.nt_status import ProtocolError


def response(data, offset=72):
    return Response(0, memoryview(bytes(64) + struct.pack("<HHI", 9, offset, len(data)) + data))


def item(name, following=0, size=5, flags=0x20, number=7, length=None):
    sent = name.encode("utf-16-le", "surrogatepass")
    fields = (0, 0, 0, 1234, 0, size, 0, flags, len(sent) if length is None else length, 0, 0, number)
    return struct.pack("<IIQQQQQQIIIIQ", following, *fields) + sent


def test_a_listing_without_the_directory_itself():
    data = item(".", 88).ljust(88, b"\0") + item("..", 88).ljust(88, b"\0") + item("a b", 88).ljust(88, b"\0")
    data += item("ü\ud800", flags=0x10)
    found = list(i.directory_items(response(data)))
    assert found == [
        i.DirectoryItem("a b", Attributes(5, 1234, 7, 0x20)),
        i.DirectoryItem("ü\ud800", Attributes(5, 1234, 7, 0x10)),
    ]


@pytest.mark.parametrize("data", [b"", b"1" * 79, item("a", following=9000), item("a", length=400)])
def test_a_listing_that_is_broken(data):
    with pytest.raises(ProtocolError):
        list(i.directory_items(response(data)))


def test_the_path_of_a_file():
    path = "\\d\\a?b".encode("utf-16-le")
    assert i.real_path(response(bytes(96) + struct.pack("<I", len(path)) + path)) == "\\d\\a?b"
    with pytest.raises(ProtocolError):
        i.real_path(response(bytes(90)))


@given(st.binary(max_size=400), st.integers(0, 600))
def test_no_response_is_read_beyond_its_end(data, offset):
    for read in (lambda found: list(i.directory_items(found)), i.real_path):
        try:
            read(response(data, offset))
        except ProtocolError:
            continue


def test_a_second_name_replaces_nothing():
    body = i.link(b"h" * 16, "d\\a").body
    assert body[3] == i.LINK_CLASS
    assert body[32] == 0
    assert body.endswith("d\\a".encode("utf-16-le"))
