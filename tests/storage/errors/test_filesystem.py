import errno
from pathlib import Path

import pytest

from podferry.contract.errors import AccessDenied, AlreadyExists, InvalidSpec, NotFound, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.errors.filesystem import filesystem_error, not_a_directory
from podferry.storage.errors.translate import StoreLocation, translate


def test_local_files_have_their_own_messages():
    """With any engine."""
    found = translate(
        PermissionError(errno.EACCES, "Permission denied"), StoreLocation(parse_uri("/data")), "a"
    )
    assert type(found) is AccessDenied
    assert "/data/a cannot be reached (Permission denied). " in str(found)
    assert "credentials" not in str(found)


@pytest.mark.parametrize(
    ("kind", "number", "operation", "expected", "text"),
    [
        ("exists", errno.EEXIST, "written", AlreadyExists, "/data/a already exists (File exists)"),
        ("missing", errno.ENOENT, "read", NotFound, "there is no file /data/a"),
        ("missing", errno.ENOENT, "created", InvalidSpec, "/data/a cannot be created (No such file"),
        ("denied", errno.EACCES, "written", AccessDenied, "/data/a cannot be written (Permission denied)"),
        ("denied", errno.EROFS, "created", AccessDenied, "/data/a cannot be written (Read-only file system)"),
        ("name", errno.ENAMETOOLONG, "created", InvalidSpec, "up to 255 bytes"),
        ("unsupported", errno.ENOTSUP, "written", InvalidSpec, "on another file system"),
        ("unreachable", errno.EIO, "read", Unavailable, "/data/a cannot be read (Input/output error)"),
        ("unreachable", None, "", Unavailable, "/data/a cannot be reached (OSError)"),
    ],
)
def test_the_error_of_each_kind_and_operation(kind, number, operation, expected, text):
    error = OSError(number, "x") if number else OSError()
    found = filesystem_error(kind, error, Path("/data/a"), operation)
    assert type(found) is expected
    assert text in str(found)


def test_a_full_disk_is_measured_at_the_closest_existing_directory(tmp_path, monkeypatch):
    measured = []
    monkeypatch.setattr("shutil.disk_usage", lambda path: measured.append(path) or (100, 99, 1))
    error = OSError(errno.ENOSPC, "x")
    found = filesystem_error("full", error, tmp_path / "no/such/file", "written")
    assert type(found) is Unavailable
    assert "(1 B free of 100 B; No space left on device)" in str(found)
    assert measured == [tmp_path]


def test_the_part_of_a_path_that_is_a_file_is_named(tmp_path):
    (tmp_path / "a").touch()
    assert f"{tmp_path}/a is a file, not a directory" in str(not_a_directory(tmp_path / "a/b/c"))
