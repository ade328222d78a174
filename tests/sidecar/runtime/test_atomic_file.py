import pytest

from podferry.sidecar.runtime.atomic_file import replace_file


def test_a_file_is_created_and_then_replaced(tmp_path):
    path = tmp_path / "note.json"
    for data in (b"first", b"2"):
        replace_file(path, data)
        assert path.read_bytes() == data
    assert list(tmp_path.iterdir()) == [path]


def test_a_torn_temporary_file_of_a_killed_process_is_overwritten(tmp_path):
    (tmp_path / "claim.tmp").write_bytes(b"torn, and longer than the next")
    replace_file(tmp_path / "claim", b"new")
    assert (tmp_path / "claim").read_bytes() == b"new"


def test_a_failure_leaves_the_old_content(tmp_path):
    path = tmp_path / "note.json"
    path.write_bytes(b"old")
    (tmp_path / "note.tmp").mkdir()
    with pytest.raises(IsADirectoryError):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"
