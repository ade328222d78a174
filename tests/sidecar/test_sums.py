import asyncio
import os
import threading

import xxhash
from hypothesis import given
from hypothesis import strategies as st

from podferry.sidecar import sums
from podferry.sidecar.sums import RunningSum, digest_of


def pieces_of(data, length):
    return [(start, memoryview(data)[start : start + length]) for start in range(0, len(data), length)]


@given(st.binary(min_size=1, max_size=300), st.integers(1, 40), st.randoms(use_true_random=False))
def test_pieces_in_any_order_give_the_sum_of_the_whole(tmp_path_factory, data, length, random):
    path = tmp_path_factory.mktemp("sums") / "file"
    path.write_bytes(data)
    pieces, running = pieces_of(data, length), RunningSum()
    random.shuffle(pieces)
    for start, piece in pieces:
        running.written(path, start, piece)
    assert running.hexdigest() == xxhash.xxh3_128_hexdigest(data)


async def test_pieces_from_many_threads_give_the_sum_of_the_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(sums, "CHUNK", 700)
    path, data = tmp_path / "file", os.urandom(200_000)
    path.write_bytes(data)
    for _ in range(20):
        running = RunningSum()
        calls = (
            asyncio.to_thread(running.written, path, start, piece) for start, piece in pieces_of(data, 1000)
        )
        await asyncio.gather(*calls)
        assert running.hexdigest() == xxhash.xxh3_128_hexdigest(data)


def test_a_gap_is_not_summed(tmp_path):
    path, running = tmp_path / "file", RunningSum()
    path.write_bytes(b"ab")
    running.written(path, 1, memoryview(b"b"))
    assert running.hexdigest() == xxhash.xxh3_128_hexdigest(b"")


def test_a_file_that_is_shorter_than_its_pieces_has_another_sum(tmp_path):
    path, running = tmp_path / "file", RunningSum()
    path.write_bytes(b"a")
    running.written(path, 1, memoryview(b"b"))
    running.written(path, 0, memoryview(b"a"))
    assert running.hexdigest() == xxhash.xxh3_128_hexdigest(b"a")


def test_what_is_left_of_a_file_is_summed(tmp_path):
    data = os.urandom(2_500_000)
    (tmp_path / "file").write_bytes(data)
    with (tmp_path / "file").open("rb", buffering=0) as file:
        assert digest_of(file) == xxhash.xxh3_128_hexdigest(data)


def test_one_thread_sums_at_a_time(tmp_path):
    """A piece that comes while the one before it is read back must wait for its turn."""
    path, data = tmp_path / "file", b"abc"
    path.write_bytes(data)
    reached, go = threading.Event(), threading.Event()

    class GatedFile:
        def __init__(self, file):
            self.seek, self._file = file.seek, file

        def readinto(self, buffer):
            reached.set()
            assert go.wait(10)
            return self._file.readinto(buffer)

    class Gated(RunningSum):
        def _read(self, file, count):
            super()._read(GatedFile(file), count)

    running = Gated()
    running.written(path, 1, memoryview(b"b"))
    first = threading.Thread(target=running.written, args=(path, 0, memoryview(b"a")))
    first.start()
    assert reached.wait(10)
    running.written(path, 2, memoryview(b"c"))
    go.set()
    first.join()
    assert running.hexdigest() == xxhash.xxh3_128_hexdigest(data)
