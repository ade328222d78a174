"""Agrees with a server on dialect, signatures and encryption, and logs in. Pure; MS-SMB2 2.2.3 to 2.2.10."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

import msgspec

from podferry.storage.smb.messages import HEADER, Command, Request, Response
from podferry.storage.smb.nt_status import ProtocolError

SMB_2_1, SMB_3_0, SMB_3_0_2, SMB_3_1_1 = 0x0210, 0x0300, 0x0302, 0x0311
DIALECTS = (SMB_2_1, SMB_3_0, SMB_3_0_2, SMB_3_1_1)
"""2.0.2 reads 64 KiB at most and has no credits for more; servers from 2009 on have 2.1."""
VERSIONS = "2.1, 3.0, 3.0.2 and 3.1.1"
"""The same in words."""
AES_128_CCM, AES_128_GCM, AES_256_CCM, AES_256_GCM = 1, 2, 3, 4
CIPHERS = (AES_128_GCM, AES_256_GCM, AES_128_CCM, AES_256_CCM)
"""Fastest first: a server takes the first that it knows."""
HMAC_SHA256, AES_CMAC, AES_GMAC = 0, 1, 2
SIGNATURES = (AES_GMAC, AES_CMAC)
SHA512 = 1
PREAUTH, ENCRYPTION, SIGNING = 1, 2, 8
"""Types of negotiation contexts."""
LARGE_MTU, ENCRYPTS = 0x04, 0x40
CAPABILITIES = LARGE_MTU | ENCRYPTS
SIGNING_ENABLED, SIGNING_REQUIRED = 1, 2
IS_GUEST, IS_ANONYMOUS, ENCRYPTS_SESSION = 1, 2, 4
ENCRYPTS_SHARE = 0x8000
DISK = 1
VALIDATE_NEGOTIATION = 0x00140204
NO_FILE = b"\xff" * 16

_NEGOTIATE = struct.Struct("<HHHHI16sIHH")
_CONTEXT = struct.Struct("<HHI")
_NEGOTIATED = struct.Struct("<HHHH16sIIIIQQHHI")
_SETUP = struct.Struct("<HBBIIHHQ")
_SET_UP = struct.Struct("<HHHH")
_TREE = struct.Struct("<HHHH")
_TREE_RESPONSE = struct.Struct("<HBBIII")
_IOCTL = struct.Struct("<HHI16sIIIIIIII")
_IOCTL_RESPONSE = struct.Struct("<HHI16sIIIIII")
_VALIDATION = struct.Struct("<I16sHH")


class Offer(msgspec.Struct, frozen=True):
    """What the client states of itself.

    Attributes:
        client: Sixteen random bytes.
        security: Whether it insists on signatures.
        dialects: Those that it speaks.
    """

    client: bytes
    security: int
    dialects: tuple[int, ...] = DIALECTS

    def request(self) -> Request:
        """The first message of a connection."""
        dialects = struct.pack(f"<{len(self.dialects)}H", *self.dialects)
        start = HEADER.size + _NEGOTIATE.size + len(dialects)
        padding = bytes(-start % 8)
        contexts = list(_contexts())
        head = _NEGOTIATE.pack(
            36,
            len(self.dialects),
            self.security,
            0,
            CAPABILITIES,
            self.client,
            start + len(padding),
            len(contexts),
            0,
        )
        return Request(Command.NEGOTIATE, head + dialects + padding + b"".join(contexts))

    def validation(self) -> Request:
        """Asks a server of dialect 3.0 whether this offer arrived: somebody between may have reduced it."""
        data = _VALIDATION.pack(CAPABILITIES, self.client, self.security, len(self.dialects))
        data += struct.pack(f"<{len(self.dialects)}H", *self.dialects)
        head = _IOCTL.pack(
            57,
            0,
            VALIDATE_NEGOTIATION,
            NO_FILE,
            HEADER.size + _IOCTL.size,
            len(data),
            0,
            0,
            0,
            _VALIDATION.size,
            1,
            0,
        )
        return Request(Command.IOCTL, head + data)


class Negotiated(msgspec.Struct, frozen=True):
    """What a server has chosen.

    Attributes:
        dialect: One of `DIALECTS`.
        security, capabilities, server: As the server states them.
        max_read, max_write, max_list: Bytes of one request.
        signing, cipher: Algorithms; a cipher of 0 for none.
        token: That the login begins with.
    """

    dialect: int
    security: int
    capabilities: int
    server: bytes
    max_read: int
    max_write: int
    max_list: int
    signing: int
    cipher: int
    token: bytes

    @property
    def large_requests(self) -> bool:
        """Whether a request may cost several credits."""
        return bool(self.capabilities & LARGE_MTU)


def _contexts() -> Iterator[bytes]:
    salt = os.urandom(32)
    yield _padded(PREAUTH, struct.pack("<HHH", 1, len(salt), SHA512) + salt)
    yield _padded(ENCRYPTION, struct.pack(f"<H{len(CIPHERS)}H", len(CIPHERS), *CIPHERS))
    yield _context(SIGNING, struct.pack(f"<H{len(SIGNATURES)}H", len(SIGNATURES), *SIGNATURES))


def _context(kind: int, data: bytes) -> bytes:
    return _CONTEXT.pack(kind, len(data), 0) + data


def _padded(kind: int, data: bytes) -> bytes:
    return _context(kind, data) + bytes(-len(data) % 8)


def read_negotiated(response: Response) -> Negotiated:
    """What a server has chosen. Raises `ProtocolError` if it is none of what was offered."""
    fields = _NEGOTIATED.unpack(response.at(HEADER.size, _NEGOTIATED.size))
    _, security, dialect, count, server, capabilities, transact, reads, writes, _, _, at, length, contexts = (
        fields
    )
    if dialect not in DIALECTS:
        raise ProtocolError(f"the server chooses the dialect 0x{dialect:04x}")
    signing, cipher = (AES_CMAC if dialect >= SMB_3_0 else HMAC_SHA256), 0
    if dialect == SMB_3_1_1:
        found = dict(_read_contexts(response, contexts, count))
        signing, cipher = found.get(SIGNING, AES_CMAC), found.get(ENCRYPTION, 0)
    elif dialect >= SMB_3_0 and capabilities & ENCRYPTS:
        cipher = AES_128_CCM
    token = bytes(response.at(at, length)) if length else b""
    return Negotiated(
        dialect, security, capabilities, server, reads, writes, transact, signing, cipher, token
    )


def _read_contexts(response: Response, start: int, count: int) -> Iterator[tuple[int, int]]:
    """Type and first choice of each context with choices."""
    for _ in range(count):
        kind, length, _ = _CONTEXT.unpack(response.at(start, _CONTEXT.size))
        data = response.at(start + _CONTEXT.size, length)
        if kind in {ENCRYPTION, SIGNING} and length >= 4:
            yield kind, int.from_bytes(data[2:4], "little")
        start += _CONTEXT.size + length + -length % 8


def session_setup(token: bytes, security: int) -> Request:
    """One step of the login."""
    offset = HEADER.size + _SETUP.size
    return Request(Command.SESSION_SETUP, _SETUP.pack(25, 0, security, 0, 0, offset, len(token), 0) + token)


def read_session_setup(response: Response) -> tuple[int, bytes]:
    """Flags of the session, and the server's token."""
    _, flags, at, length = response.unpack(_SET_UP)
    return flags, bytes(response.at(at, length)) if length else b""


def tree_connect(path: str) -> Request:
    r"""Connect to a share, named as `\\host\share`."""
    name = path.encode("utf-16-le")
    return Request(Command.TREE_CONNECT, _TREE.pack(9, 0, HEADER.size + _TREE.size, len(name)) + name)


def read_tree(response: Response) -> tuple[bool, bool]:
    """Whether the share has files, and whether it insists on encryption."""
    _, kind, _, flags, _, _ = response.unpack(_TREE_RESPONSE)
    return kind == DISK, bool(flags & ENCRYPTS_SHARE)


def check_validation(response: Response, negotiated: Negotiated) -> None:
    """Compare what the server says of the negotiation with what arrived; raises `ProtocolError`."""
    fields = _IOCTL_RESPONSE.unpack(response.at(HEADER.size, _IOCTL_RESPONSE.size))
    found = _VALIDATION.unpack(response.at(fields[6], _VALIDATION.size))
    if found != (negotiated.capabilities, negotiated.server, negotiated.security, negotiated.dialect):
        raise ProtocolError("somebody between has changed the negotiation")
