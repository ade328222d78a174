"""Keys of a session, signatures and encryption. Pure; source: MS-SMB2 sections 3.1.4 and 3.2.5.3."""

from __future__ import annotations

import hashlib
import hmac
import os
import struct
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.cmac import CMAC

from podferry.storage.smb.messages import IS_RESPONSE
from podferry.storage.smb.negotiation import (
    AES_128_GCM,
    AES_256_CCM,
    AES_256_GCM,
    AES_CMAC,
    AES_GMAC,
    SMB_3_0,
    SMB_3_1_1,
    Negotiated,
)
from podferry.storage.smb.nt_status import ProtocolError

SIGNATURE = slice(48, 64)
MESSAGE_ID = slice(24, 32)
FLAGS_AT = 16
TRANSFORM = struct.Struct("<4s16s16sIHHQ")
"""Protocol, signature, nonce, size, reserved, flags, session."""
TRANSFORM_MAGIC = b"\xfdSMB"
AUTHENTICATED = slice(20, 52)
"""The part of the transform header that the cipher covers."""
TAG_BYTES = 16


@dataclass(frozen=True, slots=True)
class Keys:
    """What a session signs with, and encrypts in each direction with."""

    signing: bytes
    sending: bytes
    receiving: bytes


def derive_keys(negotiated: Negotiated, session_key: bytes, preauth: bytes) -> Keys:
    """The keys of a session.

    Args:
        negotiated: Dialect and cipher.
        session_key: What the login has agreed on.
        preauth: SHA-512 over the messages before, from dialect 3.1.1 on.
    """
    key = session_key[:16].ljust(16, b"\0")
    if negotiated.dialect < SMB_3_0:
        return Keys(key, b"", b"")
    if negotiated.dialect < SMB_3_1_1:
        return Keys(
            _derive(key, b"SMB2AESCMAC\0", b"SmbSign\0", 16),
            _derive(key, b"SMB2AESCCM\0", b"ServerIn \0", 16),
            _derive(key, b"SMB2AESCCM\0", b"ServerOut\0", 16),
        )
    long = negotiated.cipher in {AES_256_CCM, AES_256_GCM}
    length, cipher_key = (32, session_key) if long else (16, key)
    return Keys(
        _derive(key, b"SMBSigningKey\0", preauth, 16),
        _derive(cipher_key, b"SMBC2SCipherKey\0", preauth, length),
        _derive(cipher_key, b"SMBS2CCipherKey\0", preauth, length),
    )


def _derive(key: bytes, label: bytes, context: bytes, length: int) -> bytes:
    """NIST SP 800-108 in counter mode with HMAC-SHA256, one block."""
    data = struct.pack(">I", 1) + label + b"\0" + context + struct.pack(">I", length * 8)
    return hmac.digest(key, data, "sha256")[:length]


def preauth_hash(before: bytes, message: bytes | memoryview) -> bytes:
    """The hash that covers one message more."""
    return hashlib.sha512(before + message).digest()


class Signer:
    """Signs messages, and checks signatures."""

    def __init__(self, negotiated: Negotiated, key: bytes) -> None:
        self._algorithm, self._key = negotiated.signing, key
        self._gcm = AESGCM(key) if negotiated.signing == AES_GMAC else None

    def sign(self, message: bytearray) -> None:
        """Sign a message, which states already that it is signed."""
        message[SIGNATURE] = self._signature(memoryview(message))

    def check(self, message: memoryview) -> None:
        """Check a message; its signature is set to zero. Raises `ProtocolError`."""
        found = bytes(message[SIGNATURE])
        message[SIGNATURE] = bytes(16)
        if not hmac.compare_digest(found, self._signature(message)):
            raise ProtocolError("a response has a wrong signature")

    def _signature(self, message: memoryview) -> bytes:
        if self._gcm is not None:
            role = message[FLAGS_AT] & IS_RESPONSE
            nonce = bytes(message[MESSAGE_ID]) + bytes([role, 0, 0, 0])
            return self._gcm.encrypt(nonce, b"", message)
        if self._algorithm == AES_CMAC:
            cmac = CMAC(AES(self._key))
            cmac.update(message)  # type: ignore[arg-type] # any buffer will do
            return cmac.finalize()
        return hmac.digest(self._key, message, "sha256")[:16]


class Cipher:
    """Encrypts and decrypts messages."""

    def __init__(self, negotiated: Negotiated, keys: Keys, session: int) -> None:
        gcm = negotiated.cipher in {AES_128_GCM, AES_256_GCM}
        kind, self._nonce_bytes = (AESGCM, 12) if gcm else (AESCCM, 11)
        self._sending, self._receiving, self._session = kind(keys.sending), kind(keys.receiving), session

    def encrypt(self, message: bytes | bytearray) -> bytes:
        """The message in a transform header."""
        nonce = os.urandom(self._nonce_bytes)
        head = TRANSFORM.pack(
            TRANSFORM_MAGIC, bytes(16), nonce.ljust(16, b"\0"), len(message), 0, 1, self._session
        )
        sealed = self._sending.encrypt(nonce, message, head[AUTHENTICATED])
        return b"".join((head[:4], sealed[-TAG_BYTES:], head[20:], sealed[:-TAG_BYTES]))

    def decrypt(self, frame: memoryview) -> bytes:
        """The message in a frame with a transform header. Raises `ProtocolError`."""
        if len(frame) < TRANSFORM.size:
            raise ProtocolError(f"an encrypted response of {len(frame)} bytes")
        _, tag, nonce, size, _, _, session = TRANSFORM.unpack_from(frame)
        if session != self._session or size != len(frame) - TRANSFORM.size:
            raise ProtocolError("an encrypted response of another session or size")
        sealed = b"".join((frame[TRANSFORM.size :], tag))
        try:
            return self._receiving.decrypt(nonce[: self._nonce_bytes], sealed, bytes(frame[AUTHENTICATED]))
        except InvalidTag:
            raise ProtocolError("a response cannot be decrypted") from None
