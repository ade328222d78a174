"""Logs in with a user and a password: NTLMv2, as Linux's own client does. Pure; source: MS-NLMP.

A library of all of Windows' logins takes longer to import than a thousand small files to read.
"""

from __future__ import annotations

import hmac
import struct

import msgspec

from podferry.storage.smb.digests import md4, rc4
from podferry.storage.smb.nt_status import LoginRefused

SIGNATURE = b"NTLMSSP\0"
KEY_EXCHANGE = 0x40000000
FLAGS = 0x00000001 | 0x00000004 | 0x00000010 | 0x00000200 | 0x00008000 | 0x00080000 | 0x00800000
OFFERED = FLAGS | 0x20000000 | KEY_EXCHANGE | 0x80000000
"""Unicode, target, signatures, NTLM, extended security, target information; 128 bits, key exchange, 56."""
END, AV_FLAGS, TIMESTAMP = 0, 6, 7
HAS_MIC = 2
"""In the flags of the target information: the messages are covered by a code of their own."""
MIC = slice(72, 88)

_NEGOTIATE = struct.Struct("<8sIIQQ8x")
_CHALLENGE = struct.Struct("<8sIHHII8s8xHHI")
_PAIR = struct.Struct("<HH")
_FIELD = struct.Struct("<HHI")


class Account(msgspec.Struct, frozen=True):
    """Who logs in; an account `user@domain` has no domain of its own."""

    user: str
    domain: str
    password: str

    @property
    def key(self) -> bytes:
        """NTOWFv2: the key that stands for the password."""
        name = (self.user.upper() + self.domain).encode("utf-16-le")
        return hmac.digest(md4(self.password.encode("utf-16-le")), name, "md5")


class Randomness(msgspec.Struct, frozen=True):
    """What a login needs that nobody can guess, and the time in 100 ns since 1601."""

    challenge: bytes
    session_key: bytes
    time: int


def account_of(user: str, password: str) -> Account:
    r"""The account of `DOMAIN\user`, `user@domain` or `user`."""
    domain, _, name = user.rpartition("\\")
    return Account(name, domain, password)


def negotiate_token() -> bytes:
    """The client's first message."""
    return _NEGOTIATE.pack(SIGNATURE, 1, OFFERED, 0, 0)


def authenticate_token(account: Account, challenge: bytes, random: Randomness) -> tuple[bytes, bytes]:
    """The client's second message, and the key of the session.

    Raises:
        LoginRefused: The server's message cannot be read.
    """
    flags, server, target = _read_challenge(challenge)
    pairs = _target_pairs(target)
    has_time = TIMESTAMP in pairs
    time = pairs.get(TIMESTAMP, random.time.to_bytes(8, "little"))
    if has_time:
        before = int.from_bytes(pairs.get(AV_FLAGS, b""), "little")
        pairs[AV_FLAGS] = (before | HAS_MIC).to_bytes(4, "little")
    proof, response = prove(account.key, server, random.challenge, time, _packed(pairs))
    base = hmac.digest(account.key, proof, "md5")
    key, sealed = base, b""
    if flags & KEY_EXCHANGE:
        key, sealed = random.session_key, rc4(base, random.session_key)
    legacy = (
        bytes(24)
        if has_time
        else hmac.digest(account.key, server + random.challenge, "md5") + random.challenge
    )
    names = (account.domain.encode("utf-16-le"), account.user.encode("utf-16-le"), b"")
    message = _authenticate(flags & OFFERED, (legacy, response, *names, sealed))
    if has_time:
        message[MIC] = hmac.digest(key, negotiate_token() + challenge + message, "md5")
    return bytes(message), key


def prove(key: bytes, server: bytes, client: bytes, time: bytes, target: bytes) -> tuple[bytes, bytes]:
    """The proof that a client knows the password, and the response with it."""
    rest = b"\1\1" + bytes(6) + time + client + bytes(4) + target + bytes(4)
    proof = hmac.digest(key, server + rest, "md5")
    return proof, proof + rest


def _authenticate(flags: int, parts: tuple[bytes, ...]) -> bytearray:
    offset = MIC.stop
    fields = b""
    for part in parts:
        fields += _FIELD.pack(len(part), len(part), offset)
        offset += len(part)
    head = SIGNATURE + struct.pack("<I", 3) + fields + struct.pack("<I", flags) + bytes(8) + bytes(16)
    return bytearray(head + b"".join(parts))


def _read_challenge(message: bytes) -> tuple[int, bytes, bytes]:
    """Flags, challenge and target information of the server's message."""
    if len(message) < _CHALLENGE.size or not message.startswith(SIGNATURE + b"\2\0\0\0"):
        raise LoginRefused("the server does not log in with NTLM")
    *_, flags, server, length, _, offset = _CHALLENGE.unpack_from(message)
    return flags, server, message[offset : offset + length]


def _target_pairs(target: bytes) -> dict[int, bytes]:
    pairs: dict[int, bytes] = {}
    while len(target) >= _PAIR.size:
        kind, length = _PAIR.unpack_from(target)
        if kind == END:
            break
        pairs[kind] = target[_PAIR.size : _PAIR.size + length]
        target = target[_PAIR.size + length :]
    return pairs


def _packed(pairs: dict[int, bytes]) -> bytes:
    return b"".join(_PAIR.pack(kind, len(value)) + value for kind, value in pairs.items()) + bytes(4)
