import sys

import pytest

from podferry.storage.checksum import crc64xz
from podferry.storage.checksum.checksums import CRC_KINDS, ChecksumKind, crc, is_computable

CRC_KINDS = sorted(CRC_KINDS)


@pytest.mark.parametrize("kind", CRC_KINDS)
def test_buffers_of_all_kinds_and_sizes(kind, monkeypatch):
    monkeypatch.setattr(crc64xz, "COPY_BYTES", 7)
    data = bytes(range(256)) * 3
    sums = {
        crc(kind, data),
        crc(kind, bytearray(data)),
        crc(kind, memoryview(data)),
        crc(kind, memoryview(bytearray(data))),
    }
    assert len(sums) == 1


def test_a_python_without_lzma_cannot_compute_crc64xz(monkeypatch):
    crc64xz.crc64xz.cache_clear()
    monkeypatch.setitem(sys.modules, "_lzma", None)
    try:
        assert not is_computable(ChecksumKind.CRC64XZ)
        assert is_computable(ChecksumKind.CRC64NVME)
    finally:
        crc64xz.crc64xz.cache_clear()
