"""The keys that sign stamps, and their rotation. Pure except for the random keys.

Replicas share them in a Secret, which each replica reads at intervals: a new key signs only when all replicas
have it, and its predecessor still verifies.
"""

from __future__ import annotations

import hmac
import secrets

import msgspec

KEY_BYTES = 32
KEY_LIFETIME = 30 * 24 * 3600
"""Seconds after which another key is made."""
PUBLISH_SECONDS = 300
"""Seconds after which all replicas have read a new key, even if a few attempts failed."""
MAX_KEYS = 2


class SigningKey(msgspec.Struct, frozen=True):
    """A key, and when it was made: Unix seconds."""

    made_at: int
    key: bytes


SigningKeys = tuple[SigningKey, ...]
"""Newest first."""


def decode_keys(data: bytes) -> SigningKeys:
    """Read what `encode_keys` wrote; empty if it cannot be read."""
    try:
        return msgspec.json.decode(data, type=SigningKeys)
    except msgspec.MsgspecError:
        return ()


def encode_keys(keys: SigningKeys) -> bytes:
    """The keys as JSON."""
    return msgspec.json.encode(keys)


def renew_keys(stored: SigningKeys, known: SigningKeys, now: int) -> SigningKeys:
    """The keys to store at `now`: those that are stored, and a new one if it is time.

    If the stored ones are lost, the ones that this replica knows are stored again: pods are being signed with
    them. If another replica has already made one instead, both are stored.
    """
    keys = _merged(stored, known, now) if stored else known
    if keys and now - keys[0].made_at < KEY_LIFETIME:
        return keys
    return add_key(keys, secrets.token_bytes(KEY_BYTES), now)


def _merged(stored: SigningKeys, known: SigningKeys, now: int) -> SigningKeys:
    if not known or any(one in stored for one in known):
        return stored
    signing = in_signing_order(known, now)[0]
    return (stored[0], *(one for one in known if one.key == signing))


def add_key(keys: SigningKeys, key: bytes, now: int) -> SigningKeys:
    """The keys with a newer one, unless the newest is the same."""
    return keys if keys and keys[0].key == key else (SigningKey(now, key), *keys)[:MAX_KEYS]


def in_signing_order(keys: SigningKeys, now: int) -> tuple[bytes, ...]:
    """The keys; the newest that all replicas have comes first, since it signs."""
    published = [one for one in keys if now - one.made_at >= PUBLISH_SECONDS] or list(keys[-1:])
    others = [one for one in keys if one not in published[:1]]
    return tuple(one.key for one in (*published[:1], *others))


def key_from_certificate(private_key: bytes) -> bytes:
    """A key for replicas that share only a certificate from elsewhere, derived from its private key."""
    return hmac.digest(private_key, b"podferry stamp", "sha256")
