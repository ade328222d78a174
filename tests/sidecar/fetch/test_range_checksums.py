from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podferry.contract.errors import Corrupt
from podferry.sidecar.fetch import range_checksums
from podferry.sidecar.fetch.range_checksums import MAX_REFETCHES, RangeChecksums
from podferry.storage.checksum.checksums import CRC_KINDS, Checksum, ChecksumKind, crc, running_checksum

KINDS = st.sampled_from(ChecksumKind)
RANGE = 10
SEEDED = Random(1)  # noqa: S311


def checksum_of(kind: ChecksumKind, data: bytes) -> Checksum:
    running = running_checksum(kind)
    running.update(memoryview(data))
    return Checksum(kind, running.digest())


def damaged(data: bytes, bits: int, random: Random) -> bytes:
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ bits]) + data[at + 1 :]


def add(file: RangeChecksums, start: int, data: bytes, *, first: bool = False) -> None:
    """For a hash, a range has a CRC only if it is fetched again."""
    has_crc = file.kind is file.expected.kind or not first
    file.add(start, len(data), crc(file.kind, data) if has_crc else None)


class Fetching:
    """A file that is fetched in ranges; `bad` counts how often one arrives damaged."""

    def __init__(self, path, data, kind, bad, random):
        self.data, self.path, self.bad, self.random = data, path, dict(bad), random
        self.path.write_bytes(bytes(len(data)))
        self.checksums = RangeChecksums(checksum_of(kind, data), len(data), path)
        self.fetched = []
        starts = list(range(0, len(data), RANGE))
        random.shuffle(starts)
        for start in starts:
            self.fetch(start, min(RANGE, len(data) - start), first=True)
            if random.random() < 0.5:
                self.checksums.hash_ahead()

    def fetch(self, start, length, *, first=False):
        piece = self.data[start : start + length]
        if self.bad.get(start, 0):
            piece = damaged(piece, self.bad[start], self.random)  # differently each time
            self.bad[start] -= 1
        with self.path.open("r+b") as file:
            file.seek(start)
            file.write(piece)
        add(self.checksums, start, piece, first=first)
        self.fetched.append(start)

    def repair(self):
        """The ranges that were fetched again."""
        self.fetched.clear()
        for start, length in self.checksums.refetches():
            self.fetch(start, length)
        return self.fetched


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("ranges") / "file"


SIZES = st.integers(0, 95)
RANDOM = st.randoms(use_true_random=False)


@given(KINDS, SIZES, RANDOM)
@settings(deadline=None)
def test_ranges_in_any_order_match(path, kind, size, random):
    fetching = Fetching(path, random.randbytes(size), kind, {}, random)
    assert fetching.checksums.matches()
    assert fetching.repair() == []


@given(KINDS, st.integers(1, 95), st.integers(1, 2), RANDOM)
@settings(deadline=None)
def test_bad_ranges_are_found_and_repaired(path, kind, size, count, random):
    starts = range(0, size, RANGE)
    bad = random.sample(starts, min(count, len(starts)))
    fetching = Fetching(path, random.randbytes(size), kind, dict.fromkeys(bad, 1), random)
    assert not fetching.checksums.matches()
    again = fetching.repair()
    assert fetching.checksums.matches()
    assert path.read_bytes() == fetching.data
    assert set(again) == set(range(0, max(bad) + 1, RANGE)), "what is after the last bad one stays"
    assert len(again) <= len(set(again)) + count - 1, "only a bad one that is not the last is fetched twice"


@given(
    KINDS, st.integers(1, 60), st.dictionaries(st.integers(0, 5), st.integers(1, MAX_REFETCHES + 2)), RANDOM
)
@settings(max_examples=300, deadline=None)
def test_damaged_data_never_matches(path, kind, size, times, random):
    bad = {number * RANGE: count for number, count in times.items()}
    fetching = Fetching(path, random.randbytes(size), kind, bad, random)
    again = fetching.repair()
    assert fetching.checksums.matches() == (path.read_bytes() == fetching.data)
    assert len(again) <= MAX_REFETCHES * len(range(0, size, RANGE))
    if all(count <= MAX_REFETCHES for count in times.values()):
        assert fetching.checksums.matches()


@pytest.mark.parametrize("kind", ChecksumKind)
def test_a_good_range_that_is_refetched_damaged_is_repaired(path, kind):
    fetching = Fetching(path, bytes(3 * RANGE), kind, {2 * RANGE: 1}, SEEDED)
    fetching.bad[0] = 1
    assert fetching.repair() == [0, 0, 0, RANGE, 2 * RANGE]
    assert path.read_bytes() == fetching.data


@pytest.mark.parametrize("kind", ChecksumKind)
def test_an_object_that_is_not_what_its_store_states_is_read_twice_and_named(path, kind):
    fetching = Fetching(path, bytes(3 * RANGE), kind, {}, SEEDED)
    wrong = RangeChecksums(checksum_of(kind, b"other"), 3 * RANGE, path)
    fetching.checksums, fetching.fetched = wrong, []
    for start in range(0, 3 * RANGE, RANGE):
        fetching.fetch(start, RANGE)
    assert fetching.repair() == [0, RANGE, 2 * RANGE]
    assert not wrong.matches()
    error = wrong.error("d/a")
    assert isinstance(error, Corrupt)
    assert f"found {checksum_of(kind, bytes(3 * RANGE))}; stated {checksum_of(kind, b'other')}" in str(error)


@pytest.mark.parametrize("kind", ChecksumKind)
def test_a_gap_or_an_overlap_does_not_match(path, kind):
    data = bytes(2 * RANGE)
    path.write_bytes(data)
    gap = RangeChecksums(checksum_of(kind, data), len(data), path)
    add(gap, RANGE, data[RANGE:])
    assert not gap.matches()
    add(gap, 0, data[: RANGE - 1])
    assert not gap.matches()
    add(gap, 0, data[: RANGE + 1])
    assert not gap.matches()
    add(gap, 0, data[:RANGE])
    assert gap.matches()


@pytest.mark.parametrize("kind", ChecksumKind)
def test_the_ranges_of_a_hash_have_a_crc(path, kind):
    """It distinguishes an unchanged range from a different one; the file is read for the hash."""
    data = bytes(range(2 * RANGE))
    known = RangeChecksums(checksum_of(kind, data), len(data), path)
    assert known.kind == (kind if kind in CRC_KINDS else ChecksumKind.CRC64NVME)


def test_a_file_is_hashed_up_to_its_first_gap(path, monkeypatch):
    data = bytes(range(6 * RANGE))
    path.write_bytes(data)
    file = RangeChecksums(checksum_of(ChecksumKind.MD5, data), len(data), path)
    for start in (0, RANGE, 3 * RANGE):
        add(file, start, data[start : start + RANGE], first=True)
    assert file.hash_ahead()
    assert not file.hash_ahead(), "the third range is missing"
    monkeypatch.setattr(range_checksums, "HASHED_AHEAD_BYTES", RANGE)
    add(file, 2 * RANGE, data[2 * RANGE : 3 * RANGE], first=True)
    assert [file.hash_ahead() for _ in range(3)] == [True, True, False]
    for start in (4 * RANGE, 5 * RANGE):
        add(file, start, data[start : start + RANGE], first=True)
    assert file.matches()


def test_a_crc_is_not_computed_ahead(path):
    file = RangeChecksums(checksum_of(ChecksumKind.CRC32, b"x"), 1, path)
    add(file, 0, b"x", first=True)
    assert not file.hash_ahead()
