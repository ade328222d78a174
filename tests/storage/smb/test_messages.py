"""Requests and responses of files: tests/servers/smb/test_smb.py has them understood by a server."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.storage.smb import messages as m
from podferry.storage.smb.nt_status import ProtocolError


def response(body):
    return m.Response(0, memoryview(bytes(64) + body))


@pytest.mark.parametrize(("payload", "charge"), [(0, 1), (1, 1), (65536, 1), (65537, 2), (8 << 20, 128)])
def test_what_a_request_costs(payload, charge):
    assert m.read(0, payload).charge == charge


def test_a_create_has_its_name_and_asks_for_the_number_of_the_file():
    body = m.create("d\\ü", m.Access.READ).body
    offset, length = struct.unpack_from("<HH", body, 44)
    assert body[offset - 64 : offset - 64 + length].decode("utf-16-le") == "d\\ü"
    contexts, size = struct.unpack_from("<II", body, 48)
    assert contexts % 8 == 0
    assert body[contexts - 64 :][:size].endswith(b"QFid\0\0\0\0")


def created_body(contexts=b"", offset=152, length=None):
    times = (0, 0, 1234, 0, 4096, 77)
    size = len(contexts) if length is None else length
    head = struct.pack("<HBBIQQQQQQII16sII", 89, 0, 0, 1, *times, 0x20, 0, b"h" * 16, offset, size)
    return head + contexts


def test_what_a_file_is():
    other = struct.pack("<IHHHHI4s4x", 24, 16, 4, 0, 0, 0, b"MxAc")
    wanted = struct.pack("<IHHHHI4s4xQ", 0, 16, 4, 0, 24, 8, b"QFid", 99)
    found = m.created(response(created_body(other + wanted)))
    assert found == m.Created(b"h" * 16, m.Attributes(77, 1234, 99, 0x20))
    assert m.created(response(created_body())).attributes.file_id == 0


@pytest.mark.parametrize("body", [b"", created_body(b"12", length=24), created_body(offset=9999, length=24)])
def test_a_response_that_ends_too_early(body):
    with pytest.raises(ProtocolError):
        m.created(response(body))


def test_bytes_that_were_read():
    head = struct.pack("<HBBIII", 17, 80, 0, 5, 0, 0)
    assert bytes(m.read_bytes(response(head + b"12345678"))) == b"12345"
    with pytest.raises(ProtocolError):
        m.read_bytes(response(head + b"123"))


@given(st.binary(max_size=300))
def test_no_response_is_read_beyond_its_end(body):
    for read in (m.created, m.closed, m.read_bytes, m.bytes_written):
        try:
            read(response(body))
        except ProtocolError:
            continue
