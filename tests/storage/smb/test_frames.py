"""Frames are cut where they end, however they arrive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.storage.smb.frames import BUFFER_BYTES, FrameBuffer, chained
from podferry.storage.smb.messages import HEADER, MAGIC
from podferry.storage.smb.nt_status import ProtocolError


def pushed(buffer, data, piece):
    found = []
    while data:
        space = buffer.space()
        count = min(len(space), piece, len(data))
        space[:count] = data[:count]
        data = data[count:]
        found += [bytes(frame) for frame in buffer.arrived(count)]
    return found


FRAMES = st.lists(
    st.sampled_from([64, 65, 1000, 65_000, BUFFER_BYTES - 4, BUFFER_BYTES, 400_000]), max_size=6
)


@given(FRAMES, st.sampled_from([1 << 20, 65_536, 7777, 1001]))
def test_whatever_the_pieces(sizes, piece):
    frames = [bytes([index + 1]) * size for index, size in enumerate(sizes)]
    data = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
    assert pushed(FrameBuffer(), data, piece) == frames


@pytest.mark.parametrize("length", [0, 63, 1 << 24, (1 << 32) - 1])
def test_a_length_that_none_has(length):
    with pytest.raises(ProtocolError, match="SMB 2"):
        pushed(FrameBuffer(), length.to_bytes(4, "big") + bytes(100), 104)


def test_a_buffer_that_is_free_is_used_for_the_next_large_frame():
    buffer, size = FrameBuffer(), 400_000
    frames = []
    for length in (size, size - 100, size + 1):
        data = memoryview(bytes([len(frames) + 1]) * length)
        for piece in (length.to_bytes(4, "big"), data[:100], data[100:]):
            buffer.space()[: len(piece)] = piece
            frames += buffer.arrived(len(piece))
        assert bytes(frames[-1]) == bytes(data)
        buffer.reuse(frames[-1])
    assert frames[1].obj is frames[0].obj
    assert frames[2].obj is not frames[0].obj


def message(following, size=HEADER.size):
    """Of SMB 2, in a frame where another one begins `following` bytes later, or none if it is 0."""
    return (MAGIC + bytes(16) + following.to_bytes(4, "little")).ljust(size, b"x")


def test_responses_of_a_chain_come_one_by_one():
    frame = message(72, 72) + message(0, 80)
    assert [bytes(one) for one in chained(memoryview(frame))] == [message(72, 72), message(0, 80)]


@pytest.mark.parametrize("following", [1, 63, 144, 145, (1 << 32) - 1])
def test_a_chain_that_continues_nowhere(following):
    with pytest.raises(ProtocolError, match="chain of responses is broken"):
        list(chained(memoryview(message(following, 72) + message(0, 72))))


def test_a_chain_that_continues_with_something_else():
    with pytest.raises(ProtocolError, match="does not speak SMB 2"):
        list(chained(memoryview(message(72, 72) + bytes(72))))
