"""Credentials of two S3 services at once, for `podferry run` and `ferry`, which each service checks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from podferry.contract.errors import InvalidSpec, PermanentError
from podferry.sidecar.launch.local_spec import local_spec
from podferry.sidecar.launch.secret_dirs import SecretDirs, secret_dirs, split_settings
from podferry.trainer import ferry
from tests.support.guarded_s3 import guarded_s3
from tests.support.moto_server import moto_server

TRAIN = """
import os, pathlib
data, checkpoints = (pathlib.Path(os.environ[f"PODFERRY_{name}"]) for name in ("DATASET", "CHECKPOINTS"))
(checkpoints / "epoch-1.tmp").write_bytes((data / "a").read_bytes())
(checkpoints / "epoch-1.tmp").rename(checkpoints / "epoch-1.bin")
"""


@pytest.fixture(scope="module")
def moto():
    with moto_server("bucket") as (endpoint, client):
        client.put_object(Bucket="bucket", Key="digits/a", Body=b"data")
        yield endpoint, client


def directory(path: Path, **keys: str) -> Path:
    path.mkdir()
    for name, text in keys.items():
        (path / name).write_text(text + "\n")
    return path


@pytest.fixture
def stores(moto, tmp_path, monkeypatch):
    """Directories of credentials of two services; the second names a profile."""
    with guarded_s3(moto[0], "key-of-data") as data, guarded_s3(moto[0], "key-of-results") as results:
        keys = {"AWS_ACCESS_KEY_ID": "key-of-data", "AWS_SECRET_ACCESS_KEY": "s", "AWS_ENDPOINT_URL": data}
        profiles = (
            f"[results]\naws_access_key_id=key-of-results\naws_secret_access_key=s\nendpoint_url={results}\n"
        )
        (tmp_path / "credentials").write_text(profiles)
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-the-environment")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
        yield directory(tmp_path / "data", **keys), directory(tmp_path / "results", AWS_PROFILE="results")


def stored(moto, prefix):
    found = moto[1].list_objects_v2(Bucket="bucket", Prefix=prefix).get("Contents", [])
    return [entry["Key"] for entry in found if entry["Key"].endswith("epoch-1.bin")]


def test_podferry_run_reads_one_store_and_writes_to_another(stores, moto, tmp_path):
    data, results = stores
    (tmp_path / "train.py").write_text(TRAIN)
    words = ["run", "--dataset", "s3://bucket/digits", "--checkpoints", "s3://bucket/by-run"]
    words += ["--dataset-secret-dir", "data", "--checkpoints-secret-dir", str(results)]
    command = [sys.executable, "-m", "podferry.cli.main", *words, "--", sys.executable, "train.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert len(stored(moto, "by-run/")) == 1
    assert data.is_dir()


def test_ferry_takes_the_same_as_keywords(stores, moto):
    data, results = stores
    where = {"dataset_secret_dir": data, "checkpoints_secret_dir": results}
    with ferry("s3://bucket/digits", "s3://bucket/by-ferry", lineage="t", **where) as f:
        (f.checkpoints / "epoch-1.tmp").write_bytes((f.dataset / "a").read_bytes())
        (f.checkpoints / "epoch-1.tmp").rename(f.checkpoints / "epoch-1.bin")
    assert len(stored(moto, "by-ferry/")) == 1
    endpoint = (data / "AWS_ENDPOINT_URL").read_text().strip()
    refused = pytest.raises(PermanentError, match="rejects the credentials")
    with refused, ferry("s3://bucket/digits", endpoint=endpoint):
        pass


def spec(tmp_path, **settings):
    return local_spec({"lineage": "t", **settings}, ["t"], tmp_path)


def test_the_common_directory_is_for_directions_without_one(tmp_path):
    common, own = directory(tmp_path / "common"), directory(tmp_path / "own")
    found = secret_dirs(
        {"secret_dir": common, "dataset_secret_dir": {"b": own}},
        spec(tmp_path, dataset={"a": "s3://x/a", "b": "s3://x/b"}, checkpoints="s3://x/c"),
    )
    assert found == SecretDirs({"a": str(common), "b": str(own)}, str(common), None)
    assert list(found.flags) == [
        f"--dataset-secret-dir=a={common}",
        f"--dataset-secret-dir=b={own}",
        f"--checkpoint-secret-dir={common}",
    ]
    assert secret_dirs({}, spec(tmp_path, dataset="s3://x/a")) == SecretDirs()


def test_all_that_is_wrong_is_reported_at_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = {
        "secret_dir": "nowhere",
        "dataset_secret_dir": {"c": str(tmp_path)},
        "outputs_secret_dir": str(tmp_path),
    }
    with pytest.raises(InvalidSpec) as caught:
        secret_dirs(settings, spec(tmp_path, dataset={"a": "s3://x/a", "b": "s3://x/b"}))
    assert [problem.what for problem in caught.value.problems] == [
        "--secret-dir is not a directory",
        "--dataset-secret-dir c= is for nothing in this run",
        "--outputs-secret-dir is for nothing in this run",
    ]
    assert caught.value.problems[0].measured == str(tmp_path / "nowhere")
    assert "a, b" in caught.value.problems[1].remedy


def test_keywords_are_named_and_names_of_secrets_refused(tmp_path):
    with pytest.raises(InvalidSpec) as caught, ferry("s3://x/a", dataset_secret_dir=tmp_path / "nowhere"):
        pass
    assert caught.value.problems[0].what == "dataset_secret_dir is not a directory"
    with pytest.raises(InvalidSpec) as caught, ferry("s3://x/a", secret="store", outputs_secret="other"):
        pass
    assert [problem.what.partition(" ")[0] for problem in caught.value.problems] == [
        "secret",
        "outputs_secret",
    ]
    assert "Give secret_dir, a directory" in caught.value.problems[0].remedy


def test_settings_are_split():
    own, others = split_settings({"secret_dir": "s", "outputs_secret_dir": None, "dataset": "d"})
    assert (own, others) == ({"secret_dir": "s"}, {"dataset": "d"})


def test_an_empty_directory_is_refused_once(tmp_path):
    spec = local_spec({"checkpoints": str(tmp_path / "c")}, ["t"], tmp_path / "d")
    with pytest.raises(InvalidSpec) as caught:
        secret_dirs({"secret_dir": "", "checkpoints_secret_dir": "  "}, spec)
    assert [one.what for one in caught.value.problems] == [
        "--secret-dir is empty",
        "--checkpoints-secret-dir is empty",
    ]
