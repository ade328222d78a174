"""MD4 and RC4, which NTLM is made of and OpenSSL no longer has. They protect nothing by themselves. Pure.

Sources: RFC 1320; RFC 6229 for the values that the tests compare with.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

MASK = 0xFFFFFFFF
ORDERS = (
    (range(16), (3, 7, 11, 19)),
    ([0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15], (3, 5, 9, 13)),
    ([0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15], (3, 9, 11, 15)),
)
"""Of each round: the words in their order, and by how many bits each step rotates."""
CONSTANTS = (0, 0x5A827999, 0x6ED9EBA1)
FUNCTIONS: tuple[Callable[[int, int, int], int], ...] = (
    lambda x, y, z: (x & y) | (~x & z),
    lambda x, y, z: (x & y) | (x & z) | (y & z),
    lambda x, y, z: x ^ y ^ z,
)


def md4(data: bytes) -> bytes:
    """The MD4 digest."""
    state = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)
    padded = data + b"\x80" + bytes(-(len(data) + 9) % 64) + struct.pack("<Q", 8 * len(data))
    for start in range(0, len(padded), 64):
        state = _block(state, struct.unpack_from("<16I", padded, start))
    return struct.pack("<4I", *state)


def _block(state: tuple[int, int, int, int], words: tuple[int, ...]) -> tuple[int, int, int, int]:
    a, b, c, d = state
    for (order, rotations), constant, mixed in zip(ORDERS, CONSTANTS, FUNCTIONS, strict=True):
        for step, index in enumerate(order):
            total = (a + mixed(b, c, d) + words[index] + constant) & MASK
            bits = rotations[step % 4]
            a, b, c, d = d, ((total << bits) | (total >> (32 - bits))) & MASK, b, c
    first, second, third, fourth = state
    return (first + a) & MASK, (second + b) & MASK, (third + c) & MASK, (fourth + d) & MASK


def rc4(key: bytes, data: bytes) -> bytes:
    """The data, encrypted or decrypted with RC4."""
    box, j = list(range(256)), 0
    for i in range(256):
        j = (j + box[i] + key[i % len(key)]) & 255
        box[i], box[j] = box[j], box[i]
    i = j = 0
    out = bytearray()
    for byte in data:
        i = (i + 1) & 255
        j = (j + box[i]) & 255
        box[i], box[j] = box[j], box[i]
        out.append(byte ^ box[(box[i] + box[j]) & 255])
    return bytes(out)
