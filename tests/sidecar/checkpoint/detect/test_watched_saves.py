import pytest

from podferry.sidecar.checkpoint.detect.detector import scan_checkpoints
from podferry.sidecar.checkpoint.detect.history import Save
from podferry.sidecar.checkpoint.detect.watched_saves import WatchedSaves


def candidate(root, name, data):
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_bytes(data)
    return scan_checkpoints(root)[1][name.partition("/")[0]]


def saved(found):
    return Save(found, frozenset(found.data_files), frozenset(), {}, frozenset())


@pytest.fixture
def save(tmp_path):
    return saved(candidate(tmp_path, "s-1/a.raw", b"1"))


def watched_from(save, present):
    watched = WatchedSaves()
    watched.begin([save], present)
    return watched


def test_what_stays_as_it_was_accepted_has_ended(save):
    watched = watched_from(save, [save.candidate])
    watched.saw(save.candidate, [save])
    assert watched.was_the_end(save)


def test_what_a_worker_did_not_find_at_its_start_was_not_watched(tmp_path, save):
    watched = watched_from(save, [])
    watched.begin([save], [save.candidate])
    assert not watched.was_the_end(save)
    assert not watched.has_ended(save, candidate(tmp_path, "s-2/a.raw", b"2"))


def test_another_version_of_the_name_continues_or_replaces_it(tmp_path, save):
    watched = watched_from(save, [save.candidate])
    again = candidate(tmp_path, "s-1/a.raw", b"22")
    watched.saw(again, [save])
    assert not watched.was_the_end(save)
    assert not watched.has_ended(save, candidate(tmp_path, "s-2/a.raw", b"2"))
    assert watched.has_ended(save, again), "which may replace it"


def test_a_checkpoint_that_takes_all_files_of_another_one_continues_it(tmp_path):
    inner = saved(candidate(tmp_path, "s/config.json", b"{}"))
    watched = watched_from(inner, [inner.candidate])
    watched.saw(candidate(tmp_path, "s/model.bin", b"1"), [inner])
    assert not watched.was_the_end(inner)


def test_a_save_that_is_forgotten_is_not_continued_when_it_comes_again(tmp_path, save):
    watched = watched_from(save, [save.candidate])
    watched.saw(candidate(tmp_path, "s-1/a.raw", b"22"), [save])
    watched.begin([], [])
    assert watched.was_the_end(save)
