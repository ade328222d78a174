from __future__ import annotations

import os

from podferry.sidecar.runtime.file_identity import FileIdentity, scan


def test_a_scan_finds_regular_files_and_follows_no_links(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "w").write_bytes(b"123")
    (tmp_path / "link").symlink_to("a/b/w")
    (tmp_path / "away").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    assert scan(tmp_path) == {"a/b/w": FileIdentity.of((tmp_path / "a" / "b" / "w").stat())}
    assert scan(tmp_path / "missing") == {}


def test_an_unreadable_directory_is_reported_as_a_file(tmp_path, monkeypatch):
    (tmp_path / "step" / "private").mkdir(parents=True)
    (tmp_path / "step" / "w").touch()
    scandir = os.scandir

    def guarded(path):
        if str(path).endswith("private"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    assert sorted(scan(tmp_path)) == ["step/private", "step/w"]


def test_identities_distinguish_versions(tmp_path):
    path = tmp_path / "w"
    path.write_bytes(b"1")
    before = FileIdentity.of(path.stat())
    os.utime(path, ns=(0, 1))
    assert FileIdentity.of(path.stat()) != before
