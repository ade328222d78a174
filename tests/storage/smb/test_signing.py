"""Keys, signatures and encryption, with the values that Microsoft has published."""

import pytest

from podferry.storage.smb import negotiation as n
from podferry.storage.smb.messages import HEADER, MAGIC
from podferry.storage.smb.nt_status import ProtocolError
from podferry.storage.smb.signing import Cipher, Keys, Signer, derive_keys, preauth_hash


def negotiated(dialect=n.SMB_3_1_1, signing=n.AES_GMAC, cipher=n.AES_128_GCM):
    return n.Negotiated(dialect, 0, 0, b"", 0, 0, 0, signing, cipher, b"")


def message():
    fields = (MAGIC, 64, 0, 0, 5, 1, 0x8, 0, 3, 0, 1, 7, b"")
    return bytearray(HEADER.pack(*fields) + b"body")


def test_the_keys_of_dialect_3_0():
    """Source: Microsoft's "SMB 2 and SMB 3 security: the anatomy of signing and cryptographic keys"."""
    key = bytes.fromhex("7CD451825D0450D235424E44BA6E78CC")
    assert derive_keys(negotiated(n.SMB_3_0), key, b"").signing.hex().upper() == (
        "0B7E9C5CAC36C0F6EA9AB275298CEDCE"
    )


def test_the_keys_of_dialect_3_1_1():
    """Source: the same article."""
    key = bytes.fromhex("270E1BA896585EEB7AF3472D3B4C75A7")
    digest = bytes.fromhex(
        "0DD13628CC3ED218EF9DF9772D436D0887AB9814BFAE63A80AA845F36909DB79"
        "28622DDDAD522D9751640A459762C5A9D6BB084CBB3CE6BDADEF5D5BCE3C6C01"
    )
    assert derive_keys(negotiated(), key, digest).signing.hex().upper() == "73FE7A9A77BEF0BDE49C650D8CCB5F76"


def test_before_3_0_the_session_key_signs():
    assert derive_keys(negotiated(n.SMB_2_1), b"short", b"").signing == b"short".ljust(16, b"\0")


def test_each_message_changes_the_hash():
    first = preauth_hash(bytes(64), b"1")
    assert len(first) == 64
    assert preauth_hash(first, b"2") != preauth_hash(first, memoryview(b"3"))


@pytest.mark.parametrize("algorithm", [n.AES_GMAC, n.AES_CMAC, n.HMAC_SHA256])
def test_a_signature_covers_every_byte(algorithm):
    signer = Signer(negotiated(signing=algorithm), b"k" * 16)
    signed = message()
    signer.sign(signed)
    signer.check(memoryview(bytearray(signed)))
    for at in (4, 30, 50, len(signed) - 1):
        changed = bytearray(signed)
        changed[at] ^= 1
        with pytest.raises(ProtocolError, match="wrong signature"):
            signer.check(memoryview(changed))


@pytest.mark.parametrize("cipher", n.CIPHERS)
def test_what_is_encrypted_is_decrypted_and_nothing_else(cipher):
    length = 32 if cipher in {n.AES_256_CCM, n.AES_256_GCM} else 16
    ours, theirs = b"o" * length, b"t" * length
    here = Cipher(negotiated(cipher=cipher), Keys(b"", ours, theirs), 7)
    there = Cipher(negotiated(cipher=cipher), Keys(b"", theirs, ours), 7)
    sealed = here.encrypt(message())
    assert there.decrypt(memoryview(sealed)) == message()
    for broken in (sealed[:-1], sealed[:40], bytes([*sealed[:-1], sealed[-1] ^ 1]), sealed[:44] + b"x" * 8):
        with pytest.raises(ProtocolError):
            there.decrypt(memoryview(broken))
    assert here.encrypt(message()) != here.encrypt(message())
