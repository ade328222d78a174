import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract import file_part
from podferry.contract.file_part import PART_BYTES, FilePart, parts_of, parts_within
from podferry.contract.manifest import Entry


@pytest.mark.parametrize("size", [0, 1, PART_BYTES])
def test_a_small_file_is_one_part(size):
    entry = Entry("a", size)
    assert parts_of(entry) == (FilePart(entry, 0, size),)
    assert parts_of(entry)[0].is_whole


def test_parts_differ_by_their_keys():
    parts = parts_of(Entry("a", 3 * PART_BYTES))
    assert parts[0].key == "a"
    assert len({part.key for part in parts}) == 3
    assert not any(part.is_whole for part in parts)


@given(st.integers(0, 40), st.integers(0, 45), st.integers(0, 45))
def test_parts_tile_a_file_and_some_have_a_range(size, start, length):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_part, "PART_BYTES", 7)
        parts = parts_of(Entry("a", size))
        within = list(parts_within(Entry("a", size), start, length))
    covered = [at for part in parts for at in range(part.start, part.start + part.length)]
    assert covered == list(range(size))
    touched = range(start, min(start + max(length, 1), size))
    assert {at for part in within for at in range(part.start, part.start + part.length)} >= set(touched)
    assert all(part.start < start + max(length, 1) and part.start + 7 > start for part in within)
