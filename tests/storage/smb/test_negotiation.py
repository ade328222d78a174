"""What client and server agree on, and what a server must not choose."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.storage.smb import negotiation as n
from podferry.storage.smb.messages import Response
from podferry.storage.smb.nt_status import ProtocolError

SERVER = b"s" * 16


def context(kind, *choices):
    data = struct.pack(f"<H{len(choices)}H", len(choices), *choices)
    return (struct.pack("<HHI", kind, len(data), 0) + data).ljust(16, b"\0")


def response(dialect, contexts=(), capabilities=n.LARGE_MTU | n.ENCRYPTS, security=3):
    at = 64 + 64 + 8
    fields = (65, security, dialect, len(contexts), SERVER, capabilities, 1, 2, 3, 0, 0, 128, 5, at)
    body = struct.pack("<HHHH16sIIIIQQHHI", *fields) + b"token\0\0\0" + b"".join(contexts)
    return Response(0, memoryview(bytes(64) + body))


def test_the_best_that_both_know():
    found = n.read_negotiated(
        response(n.SMB_3_1_1, [context(n.ENCRYPTION, n.AES_256_GCM), context(n.SIGNING, n.AES_GMAC)])
    )
    assert (found.signing, found.cipher, found.token) == (n.AES_GMAC, n.AES_256_GCM, b"token")
    assert (found.max_read, found.max_write, found.max_list) == (2, 3, 1)


@pytest.mark.parametrize(
    ("dialect", "signing", "cipher"),
    [(n.SMB_2_1, n.HMAC_SHA256, 0), (n.SMB_3_0_2, n.AES_CMAC, n.AES_128_CCM), (n.SMB_3_1_1, n.AES_CMAC, 0)],
)
def test_what_a_dialect_has_without_contexts(dialect, signing, cipher):
    found = n.read_negotiated(response(dialect))
    assert (found.signing, found.cipher) == (signing, cipher)


@pytest.mark.parametrize("dialect", [0x0202, 0x02FF, 0, 0x0312])
def test_a_dialect_that_was_not_offered(dialect):
    with pytest.raises(ProtocolError, match="dialect"):
        n.read_negotiated(response(dialect))


def validation(*fields):
    body = struct.pack("<HHI16sIIIIII", 49, 0, 0, b"", 0, 0, 112, 24, 0, 0) + struct.pack("<I16sHH", *fields)
    return Response(0, memoryview(bytes(64) + body))


def test_a_changed_negotiation_is_noticed():
    found = n.read_negotiated(response(n.SMB_3_0))
    n.check_validation(validation(n.LARGE_MTU | n.ENCRYPTS, SERVER, 3, n.SMB_3_0), found)
    for fields in ((n.LARGE_MTU, SERVER, 3, n.SMB_3_0), (n.LARGE_MTU | n.ENCRYPTS, SERVER, 3, n.SMB_3_1_1)):
        with pytest.raises(ProtocolError, match="changed the negotiation"):
            n.check_validation(validation(*fields), found)


@given(st.binary(max_size=300))
def test_no_response_is_read_beyond_its_end(body):
    found = Response(0, memoryview(bytes(64) + body))
    for read in (n.read_negotiated, n.read_session_setup, n.read_tree):
        try:
            read(found)
        except ProtocolError:
            continue
