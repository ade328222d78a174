import os
from pathlib import Path

import pytest

from podferry.contract.errors import InvalidSpec
from podferry.sidecar.config.local_path import ensure_dir, is_local_path, parse_directory, sibling_dir


@pytest.mark.parametrize(
    ("text", "is_path"),
    [
        ("/data", True),
        ("./bucket/x", True),
        ("../x", True),
        ("~/x", True),
        ("data", True),
        ("here/x", True),
        ("bucket/x", False),
        ("s3:/x", False),
        ("s3:x", False),
        ("S3://b", False),
        ("s3://b", False),
        ("nas:/x", False),
        ("me@nas:x", False),
        ("\\\\nas\\share\\x", False),
        ("here:1/x", True),
        ("nas:1/x", True),
        ("old:/x", True),
    ],
)
def test_what_looks_like_a_bucket_is_a_path_only_if_it_is_there(tmp_path, monkeypatch, text, is_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    (tmp_path / "old:").mkdir()
    assert is_local_path(text) is is_path


def test_a_directory_is_named(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert (parse_directory("~/x"), parse_directory("y")) == (Path("/home/me/x"), Path("y"))
    for text in ("", "  "):
        with pytest.raises(InvalidSpec, match="names no directory"):
            parse_directory(text)


def test_a_sibling_is_not_below_the_directory():
    assert sibling_dir(Path("/data/train")) == Path("/data/train.podferry")


def test_a_directory_is_created_once(tmp_path):
    for _ in range(2):
        assert ensure_dir(tmp_path / "new") is None
    assert (tmp_path / "new").is_dir()


def test_a_missing_parent_is_probably_a_typo(tmp_path):
    problem = ensure_dir(tmp_path / "no" / "such" / "place")
    assert problem.measured == f"{tmp_path} is the nearest that exists"
    assert problem.remedy == f"Run `mkdir -p {tmp_path}/no/such/place`"
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_is_a_problem(tmp_path):
    (tmp_path / "file").touch()
    taken = ensure_dir(tmp_path / "file")
    assert taken.what == f"the directory {tmp_path}/file cannot be created"
    assert (taken.measured, taken.remedy) == ("File exists", "Choose another name, or move the file away")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_directory_without_write_permission_is_a_problem(tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    assert "is not writable" in ensure_dir(tmp_path / "closed").what
