import gzip
import io
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.sidecar.checkpoint.detect.formats import compressed_stream
from podferry.sidecar.checkpoint.detect.formats.compressed_stream import GZIP_BITS, ZLIB_BITS, unpack
from podferry.sidecar.checkpoint.detect.formats.verdict import Inconclusive, Torn


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=4), st.integers(0, 20))
def test_streams_may_follow_one_another_and_end_with_zeros(parts, zeros):
    data = b"".join(map(gzip.compress, parts)) + bytes(zeros)
    assert unpack(io.BytesIO(data), GZIP_BITS) == b"".join(parts)


@given(st.binary(max_size=3000), st.data())
def test_a_stream_needs_its_last_byte(content, chance):
    for data, bits in ((gzip.compress(content), GZIP_BITS), (zlib.compress(content), ZLIB_BITS)):
        length = chance.draw(st.integers(0, len(data) - 1))
        assert unpack(io.BytesIO(data), bits) == content
        with pytest.raises(Torn):
            unpack(io.BytesIO(data[:length]), bits)


def test_small_reads_find_the_same(monkeypatch):
    monkeypatch.setattr(compressed_stream, "READ_BYTES", 3)
    data = gzip.compress(b"1" * 9999) + gzip.compress(b"2" * 9999) + bytes(7)
    assert unpack(io.BytesIO(data), GZIP_BITS) == b"1" * 9999 + b"2" * 9999


def test_damage_is_seen():
    data = bytearray(gzip.compress(b"content" * 50))
    data[-5] ^= 1
    with pytest.raises(Torn, match="damaged"):
        unpack(io.BytesIO(data), GZIP_BITS)


def test_a_long_stream_is_inconclusive(monkeypatch):
    monkeypatch.setattr(compressed_stream, "MAX_UNPACKED_BYTES", 1000)
    assert len(unpack(io.BytesIO(gzip.compress(bytes(1000))), GZIP_BITS)) == 1000
    for data in (gzip.compress(bytes(1001)), gzip.compress(bytes(999)) * 2):
        with pytest.raises(Inconclusive):
            unpack(io.BytesIO(data), GZIP_BITS)


def test_something_else_after_a_stream_is_inconclusive():
    with pytest.raises(Inconclusive):
        unpack(io.BytesIO(gzip.compress(b"1") + b"and more"), GZIP_BITS)
