from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podferry.contract.errors import Corrupt
from podferry.sidecar.fetch.range_checksums import TRIES, RangeChecksums
from podferry.storage.checksum.checksums import CRC_KINDS, Checksum, ChecksumKind, crc, running_checksum

KINDS = st.sampled_from(ChecksumKind)
RANGE = 10
SEEDED = Random(1)  # noqa: S311


def sum_of(kind: ChecksumKind, data: bytes) -> Checksum:
    whole = running_checksum(kind)
    whole.update(memoryview(data))
    return Checksum(kind, whole.digest())


def damaged(data: bytes, bits: int, random: Random) -> bytes:
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ bits]) + data[at + 1 :]


def came(file: RangeChecksums, start: int, data: bytes) -> None:
    file.summed(start, len(data), crc(file.kind, data))


class Fetching:
    """A file that is fetched in ranges, some of which come damaged, as often as `bad` says."""

    def __init__(self, path, data, kind, bad, random):
        self.data, self.path, self.bad, self.random = data, path, dict(bad), random
        self.path.write_bytes(bytes(len(data)))
        self.checked = RangeChecksums(sum_of(kind, data), len(data), path)
        self.fetched = []
        starts = list(range(0, len(data), RANGE))
        random.shuffle(starts)
        for start in starts:
            self.fetch(start, min(RANGE, len(data) - start))

    def fetch(self, start, length):
        piece = self.data[start : start + length]
        if self.bad.get(start, 0):
            piece = damaged(piece, self.bad[start], self.random)  # each time in another way
            self.bad[start] -= 1
        with self.path.open("r+b") as file:
            file.seek(start)
            file.write(piece)
        came(self.checked, start, piece)
        self.fetched.append(start)

    def mend(self):
        """The ranges that are fetched again."""
        self.fetched.clear()
        for start, length in self.checked.again():
            self.fetch(start, length)
        return self.fetched


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("checked") / "file"


SIZES = st.integers(0, 95)
RANDOM = st.randoms(use_true_random=False)


@given(KINDS, SIZES, RANDOM)
@settings(deadline=None)
def test_ranges_in_any_order_are_right(path, kind, size, random):
    fetching = Fetching(path, random.randbytes(size), kind, {}, random)
    assert fetching.checked.right()
    assert fetching.mend() == []


@given(KINDS, st.integers(1, 95), st.integers(1, 2), RANDOM)
@settings(deadline=None)
def test_bad_ranges_are_found_and_none_is_kept(path, kind, size, count, random):
    starts = range(0, size, RANGE)
    bad = random.sample(starts, min(count, len(starts)))
    fetching = Fetching(path, random.randbytes(size), kind, dict.fromkeys(bad, 1), random)
    assert not fetching.checked.right()
    again = fetching.mend()
    assert fetching.checked.right()
    assert path.read_bytes() == fetching.data
    assert set(again) == set(range(0, max(bad) + 1, RANGE)), "what lies after the last bad one stays"
    assert len(again) <= len(set(again)) + count - 1, "only a bad one that is not the last is fetched twice"


@given(KINDS, st.integers(1, 60), st.dictionaries(st.integers(0, 5), st.integers(1, TRIES + 2)), RANDOM)
@settings(max_examples=300, deadline=None)
def test_whatever_comes_damaged_how_often_it_is_never_called_right(path, kind, size, times, random):
    bad = {number * RANGE: count for number, count in times.items()}
    fetching = Fetching(path, random.randbytes(size), kind, bad, random)
    again = fetching.mend()
    assert fetching.checked.right() == (path.read_bytes() == fetching.data)
    assert len(again) <= TRIES * len(range(0, size, RANGE))
    if all(count <= TRIES for count in times.values()):
        assert fetching.checked.right()


@pytest.mark.parametrize("kind", ChecksumKind)
def test_a_good_range_that_comes_back_damaged_is_put_right(path, kind):
    fetching = Fetching(path, bytes(3 * RANGE), kind, {2 * RANGE: 1}, SEEDED)
    fetching.bad[0] = 1
    assert fetching.mend() == [0, 0, 0, RANGE, 2 * RANGE]
    assert path.read_bytes() == fetching.data


@pytest.mark.parametrize("kind", ChecksumKind)
def test_an_object_that_is_not_what_its_store_states_is_read_twice_and_named(path, kind):
    fetching = Fetching(path, bytes(3 * RANGE), kind, {}, SEEDED)
    wrong = RangeChecksums(sum_of(kind, b"other"), 3 * RANGE, path)
    fetching.checked, fetching.fetched = wrong, []
    for start in range(0, 3 * RANGE, RANGE):
        fetching.fetch(start, RANGE)
    assert fetching.mend() == [0, RANGE, 2 * RANGE]
    assert not wrong.right()
    problem = wrong.problem("d/a")
    assert isinstance(problem, Corrupt)
    assert f"found {sum_of(kind, bytes(3 * RANGE))}; stated {sum_of(kind, b'other')}" in str(problem)


@pytest.mark.parametrize("kind", ChecksumKind)
def test_a_gap_or_an_overlap_is_not_right(path, kind):
    data = bytes(2 * RANGE)
    path.write_bytes(data)
    gap = RangeChecksums(sum_of(kind, data), len(data), path)
    came(gap, RANGE, data[RANGE:])
    assert not gap.right()
    came(gap, 0, data[: RANGE - 1])
    assert not gap.right()
    came(gap, 0, data[: RANGE + 1])
    assert not gap.right()
    came(gap, 0, data[:RANGE])
    assert gap.right()


@pytest.mark.parametrize("kind", ChecksumKind)
def test_the_ranges_of_a_hash_are_summed_by_a_crc(path, kind):
    """They tell a range that comes again from one that comes differently; the file is read for the hash."""
    data = bytes(range(2 * RANGE))
    known = RangeChecksums(sum_of(kind, data), len(data), path)
    assert known.kind == (kind if kind in CRC_KINDS else ChecksumKind.CRC64NVME)
