import os

import pytest

from podferry.cache.shared_stage import place
from podferry.cache.shared_stage.place import SharedPlace
from podferry.contract.errors import Refused
from podferry.sidecar.runtime.file_lock import release


@pytest.fixture
def mounts(tmp_path, monkeypatch):
    """A tmpfs and its read-only view, as far as the check can see; sets what it sees instead."""
    (tmp_path / "stage").mkdir()
    (tmp_path / "read").symlink_to("stage")
    seen = {"kind": "tmpfs", "flags": os.ST_RDONLY}
    volume = type("Volume", (), {"f_flag": property(lambda _: seen["flags"])})
    monkeypatch.setattr(place, "mount_of", lambda _: (seen["kind"], frozenset()))
    monkeypatch.setattr(place.os, "statvfs", lambda _: volume())
    return SharedPlace(tmp_path / "stage/digits", tmp_path / "read/digits"), seen


def test_a_tmpfs_with_a_read_only_view_is_right(mounts):
    assert mounts[0].problems() == []


@pytest.mark.parametrize(
    ("what", "value", "remedy"),
    [("kind", "ext4", "mount -t tmpfs"), ("kind", "", "unknown"), ("flags", 0, "remount,bind,ro")],
)
def test_mounts_that_are_missing_are_named_with_their_command(mounts, what, value, remedy):
    mounts[1][what] = value
    [problem] = mounts[0].problems()
    assert remedy in str(problem)


def test_another_directory_is_no_view(mounts, tmp_path):
    (tmp_path / "other").mkdir()
    for other in ("other", "missing"):
        [problem] = SharedPlace(mounts[0].directory, tmp_path / other / "digits").problems()
        assert "mount --bind" in problem.remedy


def test_readers_do_not_see_the_holders_own_files(tmp_path):
    made = SharedPlace(tmp_path / "digits", tmp_path / "digits")
    lock = made.claim()
    assert oct(made.private.stat().st_mode)[-3:] == "700"
    assert [path.name for path in made.directory.iterdir()] == ["files"]
    with pytest.raises(Refused, match="another holder"):
        made.claim()
    release(lock)
    release(made.claim())


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(Refused, match="cannot be written"):
        SharedPlace(tmp_path / "missing/digits", tmp_path).claim()
