import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.sidecar.checkpoint.detect.change_tracker import ChangeTracker, TrackedFile
from podferry.sidecar.runtime.file_identity import FileIdentity

A, B = FileIdentity(1, 10, 100), FileIdentity(1, 10, 200)
IDENTITIES = st.builds(FileIdentity, st.integers(1, 2), st.integers(1, 2), st.integers(1, 2))


@pytest.mark.parametrize(
    ("found", "closed", "expected"),
    [
        (A, False, TrackedFile(A, 1.0, closed=False)),
        (A, True, TrackedFile(A, 2.0, closed=True, lingered=True)),
        (B, False, TrackedFile(B, 2.0, closed=False)),
        (B, True, TrackedFile(B, 2.0, closed=True)),
    ],
)
def test_a_file_is_unchanged_since_its_last_change_or_close(found, closed, expected):
    tracker = ChangeTracker()
    tracker.update({"w": A}, set(), 1.0)
    tracker.update({"w": found}, {"w"} if closed else set(), 2.0)
    assert tracker.files == {"w": expected}


def test_a_close_holds_until_the_next_change():
    tracker = ChangeTracker()
    tracker.update({"w": A}, {"w"}, 1.0)
    tracker.update({"w": A}, set(), 2.0)
    assert tracker.files["w"] == TrackedFile(A, 1.0, closed=True)
    tracker.update({"w": B}, set(), 3.0)
    assert tracker.files["w"] == TrackedFile(B, 3.0, closed=False, touched=True)


@pytest.mark.parametrize(
    ("changes", "patched"),
    [
        ([(10, False), (10, False)], True),
        ([(10, False), (10, True)], True),  # with its last change, it is closed
        ([(10, True)], False),
        ([(10, False)], False),  # it may have been emptied, and be whole by now
        ([(10, True), (10, False)], False),
        ([(4, False), (10, False), (10, True)], False),
        ([(10, False), (10, False), (10, True), (4, False), (10, True)], False),
        ([(10, False), (10, False), (10, True), (10, True)], False),
    ],
)
def test_a_file_that_is_changed_twice_at_its_full_size_was_not_emptied(changes, patched):
    tracker = ChangeTracker()
    tracker.update({"w": A}, {"w"}, 1.0)
    for number, (size, closed) in enumerate(changes, 2):
        now = FileIdentity(1, size, 100 + number)
        tracker.update({"w": now}, {"w"} if closed else set(), float(number))
    assert tracker.files["w"].patched == patched
    tracker.update({"w": now}, {"w"}, 9.0)  # a close reported late changes nothing
    assert tracker.files["w"].patched == patched


def test_a_second_close_without_a_change_is_no_change():
    """A lock that is opened for append again and again would never be quiet."""
    tracker = ChangeTracker()
    tracker.update({"w": A}, {"w"}, 1.0)
    tracker.update({"w": A}, {"w"}, 2.0)
    assert tracker.files["w"] == TrackedFile(A, 1.0, closed=True)
    tracker.update({"w": A}, {"w"}, 3.0, moved={"w"})
    assert tracker.files["w"] == TrackedFile(A, 3.0, closed=True, moved=True)


FULL, CUT = FileIdentity(1, 1000, 1), FileIdentity(1, 10, 2)


@pytest.mark.parametrize(
    ("found", "closed", "begun", "emptied"),
    [
        (CUT, False, False, {"w": FULL}),
        (CUT, True, False, {}),  # it may have grown before, in between
        (CUT, True, True, {"w": FULL}),  # HDF5 opens a file, closes it and opens it again to empty it
        (FileIdentity(2, 10, 2), False, False, {}),
        (FileIdentity(1, 990, 2), False, False, {}),
    ],
)
def test_a_file_that_is_cut_off_is_written_anew(found, closed, begun, emptied):
    tracker = ChangeTracker()
    tracker.update({"w": FULL}, {"w"}, 1.0)
    tracker.update({"w": found}, {"w"} if closed else set(), 2.0, begun={"w"} if begun else set())
    assert tracker.emptied == emptied
    tracker.update({"w": found}, {"w"}, 3.0)
    assert tracker.emptied == emptied
    tracker.update({}, set(), 4.0)
    assert tracker.emptied == {}


@pytest.mark.parametrize(("closed", "begun", "emptied"), [(False, True, {"w": FULL}), (True, False, {})])
def test_a_change_that_is_reported_after_the_scan_that_saw_it_counts(closed, begun, emptied):
    """HDF5 closes the file and empties it at once: the scan for the close already sees the short file."""
    tracker = ChangeTracker()
    tracker.update({"w": FULL}, {"w"}, 1.0)
    tracker.update({"w": CUT}, {"w"}, 2.0)
    tracker.update({"w": CUT}, {"w"} if closed else set(), 3.0, begun={"w"} if begun else set())
    assert tracker.emptied == emptied
    tracker.update({"w": CUT}, set(), 4.0, begun={"w"})
    assert tracker.emptied == emptied


@given(
    st.lists(st.tuples(st.dictionaries(st.sampled_from("ab"), IDENTITIES), st.sets(st.sampled_from("ab"))))
)
def test_the_tracker_matches_the_last_scan(looks):
    tracker = ChangeTracker()
    for now, (found, closed) in enumerate(looks):
        tracker.update(found, closed, float(now))
        assert {name: seen.identity for name, seen in tracker.files.items()} == found
        assert all(seen.closed for name, seen in tracker.files.items() if name in closed)
        assert all(seen.since <= now for seen in tracker.files.values())


def test_how_long_a_file_that_is_older_than_the_watch_has_had_its_size_is_unknown():
    tracker = ChangeTracker()
    tracker.watched_ns = 10
    tracker.update({"old": FileIdentity(1, 1, 10), "new": FileIdentity(2, 1, 11)}, {"old", "new"}, 0.0)
    assert {name: file.lingered for name, file in tracker.files.items()} == {"old": True, "new": False}
    tracker.update({"old": FileIdentity(1, 1, 12)}, {"old"}, 1.0)
    assert not tracker.files["old"].lingered
