import os

import pytest

from podferry.sidecar.checkpoint.detect.formats import file_holes
from podferry.sidecar.checkpoint.detect.formats.file_holes import hole_bytes, zeros_stay_written

MIB = 1 << 20


@pytest.fixture
def sparse(tmp_path):
    """Three MiB, the one in the middle written."""
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.seek(MIB)
        file.write(bytes(MIB))
        file.truncate(3 * MIB)
    if path.stat().st_blocks * 512 >= 3 * MIB:
        pytest.skip("this file system has no holes")
    return path


def test_holes_are_counted_and_written_zeros_are_not(sparse):
    with sparse.open("rb") as file:
        assert hole_bytes(file) == 2 * MIB


def test_a_hole_that_is_written_is_gone(sparse):
    with sparse.open("r+b") as file:
        file.write(bytes(MIB))
        file.seek(2 * MIB)
        file.write(bytes(MIB))
        file.flush()
        assert hole_bytes(file) == 0


@pytest.mark.parametrize("data", [b"", b"1", b"1" * 100_000])
def test_a_written_file_has_no_hole(tmp_path, data):
    (tmp_path / "w").write_bytes(data)
    with (tmp_path / "w").open("rb") as file:
        assert hole_bytes(file) == 0


def test_a_file_system_that_cannot_say_has_no_holes(sparse, monkeypatch):
    def refused(*_):
        raise OSError

    with sparse.open("rb") as file:
        monkeypatch.setattr(file_holes.os, "lseek", refused)
        assert hole_bytes(file) == 0
        monkeypatch.delattr(file_holes.os, "SEEK_HOLE")
        assert hole_bytes(file) == 0


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [(["ext4"], True), (["tmpfs", "tmpfs"], True), (["zfs"], False), (["xfs", "zfs"], False), ([], False)],
)
def test_only_known_file_systems_keep_zeros(tmp_path, kinds, expected):
    device = tmp_path.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    lines = [f"36 35 {number} / /mnt/{kind} rw,noatime master:1 - {kind} /dev/root rw" for kind in kinds]
    (tmp_path / "mounts").write_text("\n".join(["36 35 0:0 / / rw - zfs pool rw", "", *lines]))
    with (tmp_path / "mounts").open("rb") as file:
        assert zeros_stay_written(file, tmp_path / "mounts") is expected


def test_unknown_mounts_keep_nothing(tmp_path):
    (tmp_path / "w").touch()
    with (tmp_path / "w").open("rb") as file:
        assert not zeros_stay_written(file, tmp_path / "absent")
