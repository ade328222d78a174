from pathlib import Path

import pytest

from podferry.cli.options.store_options import (
    parse_dataset,
    parse_local_path,
    parse_location,
    store_config_of,
)
from podferry.contract.errors import CredentialsMissing, InvalidSpec


def test_a_path_may_be_relative_and_hold_a_hash(podferry, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d#1").mkdir()
    (tmp_path / "d#1" / "x").write_bytes(b"1")
    said = podferry("dataset", "freeze", "d#1")
    assert said.out.startswith(f"file://{tmp_path}/d%231#sha256=")
    assert podferry("dataset", "ls", said.out.strip()).code == 0


def test_a_path_is_absolute_and_a_uri_is_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    assert parse_local_path("d/e") == tmp_path / "d/e"
    assert parse_local_path("~/d") == Path("/home/me/d")
    assert parse_local_path("s3://b/d") is None


def test_a_path_may_have_characters_that_mean_something_in_a_uri():
    assert parse_location("/d?engine=x#y%20").key == "d?engine=x#y%20"
    assert parse_dataset("/d#sha256=1").uri.key == "d#sha256=1"
    assert parse_dataset("s3://b/d#bytes=5").bytes == 5


@pytest.mark.parametrize("parse", [parse_location, parse_dataset])
@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_location_is_an_error(parse, text):
    with pytest.raises(InvalidSpec, match="the location is empty"):
        parse(text)


def test_a_secret_of_a_store_is_used_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-the-environment")
    assert store_config_of().credentials["AWS_ACCESS_KEY_ID"] == "of-the-environment"
    (tmp_path / "AWS_SECRET_ACCESS_KEY").write_text("s")
    (tmp_path / "AWS_ACCESS_KEY_ID").write_text("of-the-secret")
    config = store_config_of("http://127.0.0.1:9", "eu-1", tmp_path)
    assert (config.endpoint, config.region) == ("http://127.0.0.1:9", "eu-1")
    assert config.credentials == {"AWS_ACCESS_KEY_ID": "of-the-secret", "AWS_SECRET_ACCESS_KEY": "s"}
    with pytest.raises(CredentialsMissing):
        store_config_of(secret_dir=tmp_path / "none")
