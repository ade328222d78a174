"""The login has the values that Microsoft has published; tests/servers/test_smb.py logs in at a server."""

import hmac
import struct

import pytest

from podferry.storage.smb import ntlm
from podferry.storage.smb.digests import rc4
from podferry.storage.smb.nt_status import LoginRefused

ACCOUNT = ntlm.Account("User", "Domain", "Password")
SERVER, CLIENT = bytes.fromhex("0123456789abcdef"), b"\xaa" * 8
RANDOM = ntlm.Randomness(CLIENT, b"\x55" * 16, 0)
TARGET = b"".join(
    struct.pack("<HH", kind, 12) + name.encode("utf-16-le") for kind, name in ((2, "Domain"), (1, "Server"))
) + bytes(4)


def challenge(target=TARGET, flags=ntlm.OFFERED):
    fields = (ntlm.SIGNATURE, 2, 0, 0, 56, flags, SERVER, len(target), len(target), 56)
    return struct.pack("<8sIHHII8s8xHHI8x", *fields) + target


def test_the_values_of_the_specification():
    """MS-NLMP, section 4.2.4."""
    assert ACCOUNT.key.hex() == "0c868a403bfd7a93a3001ef22ef02e3f"
    proof, response = ntlm.prove(ACCOUNT.key, SERVER, CLIENT, bytes(8), TARGET)
    assert proof.hex() == "68cd0ab851e51c96aabc927bebef6a1c"
    assert response.startswith(proof)
    assert hmac.digest(ACCOUNT.key, proof, "md5").hex() == "8de40ccadbc14a82f15cb0ad0de95ca3"
    token, key = ntlm.authenticate_token(ACCOUNT, challenge(), RANDOM)
    assert key == RANDOM.session_key
    assert token.endswith(bytes.fromhex("c5dad2544fc9799094ce1ce90bc9d03e"))
    assert bytes.fromhex("86c35097ac9cec102554764a57cccc19aaaaaaaaaaaaaaaa") in token


def test_a_server_with_a_clock_gets_a_code_of_the_messages():
    server = challenge(struct.pack("<HHQ", 7, 8, 99) + TARGET)
    token, key = ntlm.authenticate_token(ACCOUNT, server, RANDOM)
    without = token[:72] + bytes(16) + token[88:]
    assert token[72:88] == hmac.digest(key, ntlm.negotiate_token() + server + without, "md5")
    assert struct.pack("<HHI", 6, 4, 2) in token


def test_without_key_exchange_the_password_s_own_key_is_the_session_s():
    token, key = ntlm.authenticate_token(ACCOUNT, challenge(flags=ntlm.FLAGS), RANDOM)
    assert key.hex() == "8de40ccadbc14a82f15cb0ad0de95ca3"
    assert not token.endswith(rc4(key, RANDOM.session_key))


@pytest.mark.parametrize(
    ("user", "expected"),
    [("u", ("u", "")), ("LAB\\u", ("u", "LAB")), ("u@lab.example", ("u@lab.example", ""))],
)
def test_the_account(user, expected):
    found = ntlm.account_of(user, "p")
    assert (found.user, found.domain) == expected


@pytest.mark.parametrize("message", [b"", b"NTLMSSP\0\3\0\0\0" + bytes(60), challenge()[:40], b"`H\6\6+\6"])
def test_what_is_no_challenge(message):
    with pytest.raises(LoginRefused, match="NTLM"):
        ntlm.authenticate_token(ACCOUNT, message, RANDOM)
