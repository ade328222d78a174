"""Versions on disk; a process that is killed between any two of its file operations loses none."""

import os
from pathlib import Path

import pytest

from podferry.cache.holder.content_checksums import file_checksum, record_checksums, recorded_dataset
from podferry.cache.holder.version_files import VersionFiles
from podferry.contract.manifest import Entry, freeze
from podferry.contract.tmpfs_cost import PAGE_BYTES
from podferry.sidecar.staging.ownership_record import read_ownership
from tests.support.dataset_site import held

URI = "memory://d"
FIRST = {"a/1": b"one", "a/2": b"two", "gone": b"x"}
SECOND = {"a/1": b"one", "a/2": b"TWO", "new/3": b"three"}


def manifest(files, tag=bytes.hex):
    return freeze(URI, [Entry(name, len(data), tag(data)) for name, data in files.items()])


def write(root, files):
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)


@pytest.fixture
def files(tmp_path):
    """Of a holder that serves the first version."""
    made = VersionFiles(tmp_path / "held", tmp_path / "held.podferry")
    write(made.root, FIRST)
    (tmp_path / "held.podferry").mkdir()
    record_checksums(made.root, tmp_path / "held.podferry", manifest(FIRST), URI)
    return made


def served(files):
    return recorded_dataset(files._private, URI)


def complete_next(files):
    """The second version, as far as it is before it is served."""
    files.prepare(served(files), manifest(SECOND))
    write(files.next_root, {name: data for name, data in SECOND.items() if FIRST.get(name) != data})
    record_checksums(files.next_root, files.next_private, manifest(SECOND), URI)


def test_what_versions_have_in_common_is_linked(files):
    files.prepare(served(files), manifest(SECOND))
    assert held(files.next_root) == {"a/1": b"one"}
    assert (files.next_root / "a/1").stat().st_ino == (files.root / "a/1").stat().st_ino
    assert read_ownership(files.next_private).names == set(SECOND)
    assert (files.next_root / "a").stat().st_mode & 0o777 == 0o755


def test_what_other_versions_take_counts_once_and_without_what_they_share(files):
    assert files.other_bytes(files.root) == 0
    complete_next(files)
    assert files.other_bytes(files.next_root) == 2 * PAGE_BYTES  # a/2 and gone
    assert files.other_bytes(files.root) == 2 * PAGE_BYTES  # a/2 and new/3
    files.replace(1)
    assert files.other_bytes(files.root) == 2 * PAGE_BYTES


def test_files_without_a_tag_are_not_taken_over(files):
    untagged = manifest(FIRST, lambda data: "")
    record_checksums(files.root, files._private, untagged, URI)
    files.prepare(served(files), manifest({**FIRST, "more": b""}, lambda data: ""))
    assert held(files.next_root) == {}


def test_what_an_attempt_has_fetched_stays_for_the_next_one_of_the_same_version(files):
    files.prepare(served(files), manifest(SECOND))
    write(files.next_root, {"new/3": b"three"})
    files.prepare(served(files), manifest(SECOND))
    assert set(held(files.next_root)) == {"a/1", "new/3"}
    files.prepare(served(files), manifest({**SECOND, "new/3": b"else"}))
    assert set(held(files.next_root)) == {"a/1"}


def test_the_version_before_stays_until_it_is_removed(files):
    complete_next(files)
    files.replace(4)
    assert (held(files.root), held(files.old_root(4))) == (SECOND, FIRST)
    assert list(files.old_numbers()) == [4]
    assert served(files).manifest == manifest(SECOND)
    files.remove_old(4)
    assert (held(files.root), list(files.old_numbers())) == (SECOND, [])


def test_a_version_that_was_dropped_leaves_what_the_next_one_shares(files):
    files.prepare(served(files), manifest(SECOND))
    files.drop_served()
    assert (held(files.root), held(files.next_root)) == ({}, {"a/1": b"one"})
    assert served(files) is None


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("operation", range(12))
@pytest.mark.parametrize("starts", [True, False])
def test_a_kill_between_any_two_operations_loses_no_version(files, monkeypatch, operation, starts):
    complete_next(files)
    left = [operation]

    def counted(function):
        def call(*args, **kwargs):
            if not left[0]:
                raise Killed
            left[0] -= 1
            return function(*args, **kwargs)

        return call

    with monkeypatch.context() as patched:
        for name in ("rename", "replace", "rmdir", "mkdir", "unlink"):
            patched.setattr(Path, name, counted(getattr(Path, name)))
        patched.setattr(os, "rmdir", counted(os.rmdir))
        try:
            files.replace(0)
        except Killed:
            killed = True
        else:
            killed = False
    if starts:  # the next holder makes its directory before it looks
        files.root.mkdir(exist_ok=True)
    files.finish(0)
    found = served(files)
    assert found.manifest == manifest(SECOND)
    assert held(files.root) == SECOND
    assert found.checksums == tuple(file_checksum(files.root / one.name) for one in found.manifest.entries)
    assert held(files.old_root(0)) == FIRST
    assert killed or operation > 6
