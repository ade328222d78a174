from __future__ import annotations

import pytest

from podferry.contract.errors import Changed
from podferry.sidecar.fetch.byte_stream import END, ByteStream


def stream_of(*items):
    """A stream of these items, and the lengths of the chunks that it has released."""
    released = []
    stream = ByteStream(released.append)
    for item in items:
        stream.put(memoryview(item) if isinstance(item, bytes) else item)
    return stream, released


def test_a_read_ends_at_a_chunk_and_releases_it_with_the_next_read():
    stream, released = stream_of(b"abc", b"de", END)
    assert [stream.read(2), stream.read(2)] == [b"ab", b"c"]
    assert sum(released) == 0
    assert stream.read(5) == b"de"
    assert sum(released) == 3
    assert [stream.read(1), stream.read(1)] == [b"", b""]
    assert sum(released) == 5


def test_an_error_is_raised_after_the_chunks_before_it():
    stream, released = stream_of(b"abc", Changed.of("it has changed"))
    assert stream.read(3) == b"abc"
    with pytest.raises(Changed):
        stream.read(1)
    assert sum(released) == 3


def test_discarded_chunks_are_released():
    stream, released = stream_of(b"abc", b"de", Changed.of("it has changed"), END)
    assert stream.read(1) == b"a"
    stream.discard()
    assert sum(released) == 5
