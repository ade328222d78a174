"""MD4 and RC4 have the published values."""

import pytest

from podferry.storage.smb.digests import md4, rc4


@pytest.mark.parametrize(
    ("text", "digest"),
    [
        ("", "31d6cfe0d16ae931b73c59d7e0c089c0"),
        ("abc", "a448017aaf21d8525fc10ae87aa6729d"),
        ("message digest", "d9130a8164549fe818874806e1c7014b"),
        ("1234567890" * 8, "e33b4ddc9c38f2199c3e7b164fcc0536"),
    ],
)
def test_md4(text, digest):
    """RFC 1320, appendix A.5."""
    assert md4(text.encode()).hex() == digest


@pytest.mark.parametrize(
    ("key", "stream"),
    [
        ("0102030405", "b2396305f03dc027ccc3524a0a1118a8"),
        ("0102030405060708090a0b0c0d0e0f10", "9ac7cc9a609d1ef7b2932899cde41b97"),
    ],
)
def test_rc4(key, stream):
    """RFC 6229, section 2."""
    assert rc4(bytes.fromhex(key), bytes(16)).hex() == stream
