import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.errors import Refused
from podferry.storage.write_body import BodySource, as_bytes, parts_of


async def test_an_object_with_too_many_parts_is_refused():
    source = BodySource(iter([b"x" * 4] * 4), 4, 12)
    assert await source.read_small() is None
    with pytest.raises(Refused, match="larger"):
        [part async for part in source.stream()]
    large = BodySource(iter([b"x" * 4] * 3), 4, 12)
    assert await large.read_small() is None
    assert [part async for part in large.stream()] == [b"x" * 4] * 3


@given(st.lists(st.binary(max_size=9), max_size=8), st.integers(1, 7))
def test_parts_have_one_size_except_the_last(chunks, size):
    data = b"".join(chunks)
    for body in (iter(chunks), data):
        parts = list(parts_of(body, size))
        assert b"".join(parts) == data == as_bytes(iter(chunks))
        assert all(len(part) == size for part in parts[:-1])
        assert all(0 < len(part) <= size for part in parts[-1:])


async def test_a_body_shorter_than_one_part_is_read_at_once():
    assert await BodySource(iter([b"ab", b"c"]), 4, 12).read_small() == b"abc"
    assert await BodySource(b"", 4, 12).read_small() == b""


async def test_the_caller_gets_what_the_body_raised():
    def body():
        yield b"abcd"
        raise KeyError("mine")

    source = BodySource(body(), 4, 12)

    async def upload():
        try:
            [part async for part in source.stream()]
        except KeyError:
            raise OSError("the engine's own error") from None

    with pytest.raises(KeyError, match="mine"):
        await source.finish(asyncio.ensure_future(upload()))


async def test_a_cancelled_upload_gets_no_further_part():
    source, started, resume = BodySource(iter([b"abcd"] * 3), 4, 12), asyncio.Event(), asyncio.Event()
    raised = []

    async def upload():
        started.set()
        await resume.wait()
        try:
            source.next_part()
        except InterruptedError as error:
            raised.append(error)
            raise

    finished = asyncio.create_task(source.finish(asyncio.ensure_future(upload())))
    await started.wait()
    finished.cancel()
    resume.set()
    with pytest.raises(asyncio.CancelledError):
        await finished
    assert raised
