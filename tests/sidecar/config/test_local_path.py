from pathlib import Path

import pytest

from podferry.contract.errors import InvalidSpec
from podferry.sidecar.config.local_path import is_local_path, parse_directory


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
    ],
)
def test_what_looks_like_a_bucket_is_a_path_only_if_it_is_there(tmp_path, monkeypatch, text, is_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    assert is_local_path(text) is is_path


def test_a_directory_is_named(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert (parse_directory("~/x"), parse_directory("y")) == (Path("/home/me/x"), Path("y"))
    for text in ("", "  "):
        with pytest.raises(InvalidSpec, match="names no directory"):
            parse_directory(text)
