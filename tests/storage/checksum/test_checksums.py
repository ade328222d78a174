from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podferry.storage.checksum.checksums import (
    CRC_KINDS,
    DIGEST_BYTES,
    Checksum,
    ChecksumKind,
    combine_crcs,
    crc,
    crc64,
    is_computable,
    matches,
    object_checksum,
    running_checksum,
)
from podferry.storage.multipart import UploadedPart

CHECK = {
    ChecksumKind.CRC32: "cbf43926",
    ChecksumKind.CRC32C: "e3069283",
    ChecksumKind.CRC64NVME: "ae8b14860a799888",
    ChecksumKind.CRC64XZ: "995dc9bbdf1939fa",
    ChecksumKind.MD5: "25f9e794323b453885f5181f1b624d0b",
    ChecksumKind.SHA1: "f7c3bc1d808e04732adf679965ccc34ca7ae3441",
    ChecksumKind.SHA256: "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225",
    ChecksumKind.XXH128: "33119477ede5dcd5e9716427681d5860",
}
"""Of "123456789": the check values of the catalogue of parametrised CRC algorithms; RFC 1321; FIPS 180-4. The
last is what the xxhash package computes; its specification only has the checksum of no bytes, below."""
CRC_KINDS = sorted(CRC_KINDS)


@pytest.mark.parametrize("kind", ChecksumKind)
def test_the_check_value_of_its_specification(kind):
    assert is_computable(kind)
    digest = running_checksum(kind)
    digest.update(memoryview(b"123456789"))
    assert digest.digest().hex() == CHECK[kind]
    assert len(digest.digest()) == DIGEST_BYTES[kind]
    assert matches(Checksum(kind, bytes.fromhex(CHECK[kind])), b"123456789")
    assert not matches(Checksum(kind, bytes.fromhex(CHECK[kind])), b"123456780")


def test_the_checksum_of_no_bytes():
    assert running_checksum(ChecksumKind.XXH128).digest().hex() == "99aa06d3014798d86001c324468d497f"
    assert all(crc(kind, b"") == 0 for kind in CRC_KINDS)


@given(st.sampled_from(ChecksumKind), st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=6))
@settings(deadline=None)
def test_incremental_checksums_equal_those_of_all_bytes(kind, data, cuts):
    digest = running_checksum(kind)
    for start, end in pairwise(sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})):
        digest.update(memoryview(data)[start:end])
    assert matches(Checksum(kind, digest.digest()), data)


@given(st.sampled_from(CRC_KINDS), st.binary(max_size=300), st.binary(max_size=300))
@settings(deadline=None)
def test_two_ranges_combine(kind, first, second):
    joined = combine_crcs(kind, crc(kind, first), crc(kind, second), len(second))
    assert joined == crc(kind, first + second) == crc(kind, second, crc(kind, first))


@given(
    st.sampled_from(CRC_KINDS), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(1, 2**42)
)
@settings(deadline=None)
def test_long_ranges_combine_like_their_halves(kind, first, second, half):
    """Ranges this long do not fit into a test: shifting twice must equal shifting by double the length."""
    once = combine_crcs(kind, first, 0, 2 * half)
    assert combine_crcs(kind, combine_crcs(kind, first, 0, half), 0, half) == once
    assert combine_crcs(kind, first, second, 2 * half) == once ^ second


def test_a_checksum_prints_its_kind():
    assert str(Checksum(ChecksumKind.CRC32C, bytes.fromhex("e3069283"))) == "crc32c e3069283"


def test_checksums_of_parts_combine_to_that_of_the_object():
    data = [bytes(range(251)) * 280, b"\x00" * 70_281, b"a short one"]
    receipts = [UploadedPart(i + 1, "", crc64(item), len(item)) for i, item in enumerate(data)]
    assert object_checksum(receipts).crc64 == crc64(b"".join(data))
    assert object_checksum(receipts).size == 140_572
