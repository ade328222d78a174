"""The checksum of a file as HDFS computes it. The expected ones are those of Apache Hadoop 3.4.1."""

import pytest

from podferry.storage.webhdfs.block_checksums import BlockChecksums, stated_checksum

ONE, TWO = "MD5-of-0MD5-of-512CRC32C", "MD5-of-2048MD5-of-512CRC32C"


TEN, BLOCKS = "b8b6b317656779aff5773e33b1806188", "b0fa53fd17175adc16b241c7d632d440"


def checksum(parts, algorithm):
    checksums = BlockChecksums()
    for part in parts:
        checksums.update(part)
    return checksums.file_checksum(algorithm)


def test_one_block():
    assert checksum([b"0123456789"], ONE) == TEN
    assert checksum([b"01234", b"", b"56789"], ONE) == TEN


def test_several_blocks_and_any_parts():
    data = bytes(range(256)) * (10 << 10)  # 2.5 MiB
    assert checksum([data], TWO) == BLOCKS
    assert checksum([data[:1000], data[1000:1_000_001], data[1_000_001:]], TWO) == BLOCKS


@pytest.mark.parametrize(
    "algorithm", ["", "COMPOSITE-CRC32C", "MD5-of-0MD5-of-0CRC32", "MD5-of-0MD5-of-4096CRC32C"]
)
def test_other_algorithms_are_not_computed(algorithm):
    assert checksum([b"1"], algorithm) is None


def test_what_a_response_states():
    text = "00000200" + "0" * 16 + "AB" * 16 + "0" * 8
    assert stated_checksum(text) == "ab" * 16
