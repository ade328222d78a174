import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.bundle import MAX_FILES, bundle_name, bundle_positions

POSITIONS = st.sets(st.integers(0, 2000), min_size=1, max_size=MAX_FILES).map(sorted)


@given(POSITIONS)
def test_a_name_says_which_files_a_bundle_has(positions):
    assert bundle_positions(bundle_name(positions)) == tuple(positions)


@pytest.mark.parametrize(
    ("positions", "name"), [([7], "7"), ([0, 1, 2], "0-2"), ([0, 1, 3, 5, 6], "0-1,3,5-6")]
)
def test_neighbors_are_one_range(positions, name):
    assert bundle_name(positions) == name


@given(st.text(st.sampled_from("0123456789-,x²"), max_size=12))
def test_any_other_text_names_no_bundle(text):
    found = bundle_positions(text)
    assert found is None or (list(found) == sorted(set(found)) and 0 < len(found) <= MAX_FILES)


@pytest.mark.parametrize(
    "name",
    ["", "-", "1-", "2-1", "3,3", "3,1", "0-256", "0-9999999999", "0-99999999999", "1,,2", "1 ", "\u0661"],
)
def test_what_no_reader_names_is_refused(name):
    assert bundle_positions(name) is None
