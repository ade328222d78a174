from collections.abc import Callable

import pytest
from fsspec.registry import known_implementations

from podferry.contract.annotations import read_annotations
from podferry.contract.errors import InvalidSpec
from podferry.contract.pod_locations import (
    LOCAL_SCHEMES,
    directory_problems,
    location_problems,
    unknown_scheme_warnings,
)
from podferry.contract.schemes import WITHOUT_USER
from podferry.contract.spec import PREFIX, FerrySpec
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store

Read = Callable[..., FerrySpec]
STORE = {"checkpoints": "s3://c/x", "outputs": "gs://o/x"}


@pytest.fixture
def spec() -> Read:
    """The spec of annotations with these settings."""

    def read(**settings: str) -> FerrySpec:
        found = read_annotations({PREFIX + name: text for name, text in settings.items()})
        assert found is not None
        return found

    return read


@pytest.mark.parametrize(
    ("key", "location"),
    [
        ("dataset", "file:///podferry/secrets/checkpoints"),
        ("dataset", "/mnt/data#bytes=5&files=1"),
        ("dataset.val", "file:///mnt/val?engine=fsspec"),
        ("checkpoints", "file:///results"),
        ("checkpoints", "local://results/x"),
        ("outputs", "memory://results/x"),
        ("restore", "/mnt/earlier"),
        ("dataset", "dir://checkpoints"),
        ("checkpoints", "simplecache://results/x"),
        ("restore", "zip://earlier/x"),
    ],
)
def test_the_pods_own_files_are_no_store(spec: Read, key: str, location: str) -> None:
    (problem,) = location_problems(spec(**{**STORE, key: location}))
    assert problem.what.startswith(f"{PREFIX}{key}: ")
    assert location.partition("#")[0].removeprefix("file://") in problem.measured
    assert "s3://BUCKET/PREFIX" in problem.remedy


def test_file_systems_of_fsspec_are_remote_or_refused() -> None:
    """A new one of fsspec itself has to be looked at."""
    remote = {"http", "https", "ftp", "sftp", "ssh", "smb", "hdfs", "webhdfs", "arrow_hdfs"}
    remote |= {"dask", "dbfs", "gist", "github", "jlab", "jupyter"}
    own = {name for name, one in known_implementations.items() if one["class"].startswith("fsspec.")}
    assert own - remote <= LOCAL_SCHEMES
    assert not remote & LOCAL_SCHEMES


@pytest.mark.parametrize(
    ("scheme", "remedy"),
    [
        ("webdaf", "Did you mean 'webdav'?"),
        ("lustre", "podferry's own: s3,"),
        ("minio", "Write s3://BUCKET/PATH, and set the endpoint"),
    ],
)
def test_a_scheme_that_another_package_may_open(spec: Read, scheme: str, remedy: str) -> None:
    for key in ("dataset", "outputs"):
        (warning,) = unknown_scheme_warnings(spec(**{**STORE, key: f"{scheme}://data/x"}))
        what = f"{PREFIX}{key}: {scheme}:// needs another package's engine in the agent's image. "
        assert warning.startswith(what + remedy)
    assert list(unknown_scheme_warnings(spec(**STORE, dataset="pvc://data/x"))) == []


@pytest.mark.parametrize("key", ["checkpoints", "outputs", "restore"])
@pytest.mark.parametrize(
    "location", ["pvc://results/../../secrets/dataset", "pvc://../secrets", "pvc://results/./x"]
)
def test_a_claim_is_not_left(spec: Read, key: str, location: str) -> None:
    (problem,) = location_problems(spec(**{**STORE, key: location}))
    assert problem.what == f"{PREFIX}{key}: not a claim and a path in it"
    assert problem.measured == location


@pytest.mark.parametrize("scheme", WITHOUT_USER)
def test_a_user_that_the_engine_would_refuse(spec: Read, scheme: str) -> None:
    location = f"{scheme}://gho_token@host/x"
    (problem,) = location_problems(spec(**STORE, dataset=location))
    assert problem.what == f"{PREFIX}dataset: a URI of {scheme}:// must not name a user"
    with pytest.raises(InvalidSpec, match=r"must not (name|have) a user"):
        open_store(parse_uri(location))


def test_a_share_has_a_name(spec: Read) -> None:
    (problem,) = location_problems(spec(dataset="smb://nas", checkpoints="smb://other/runs"))
    assert str(problem) == (
        "podferry.io/dataset: the URI names no share (smb://nas/). Write smb://nas/SHARE/path."
    )


@pytest.mark.parametrize("restore", ["auto", "latest", "never", "epoch-1-0123456789ab", "s3://c/other"])
def test_stores_are(spec: Read, restore: str) -> None:
    assert list(location_problems(spec(**STORE, dataset="https://example.com/digits", restore=restore))) == []


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("dataset-path", "/etc"),
        ("dataset-path", "/usr"),
        ("dataset-path", "/bin"),
        ("checkpoint-path", "/usr/local"),
        ("checkpoint-path", "/usr/lib/python3"),
        ("output-path", "/var"),
        ("output-path", "/var/run/secrets/tokens"),
        ("dataset-path.val", "/run"),
    ],
)
def test_a_volume_must_not_hide_the_system(spec: Read, key: str, path: str) -> None:
    settings = {**STORE, "dataset": "s3://d/x", "dataset.val": "s3://d/val", key: path}
    (problem,) = directory_problems(spec(**settings))
    assert problem.what.startswith(f"{PREFIX}{key}: ")
    assert problem.measured.startswith(path)


@pytest.mark.parametrize(
    "path", ["/data", "/usr/src/app/data", "/usr/share/x", "/mnt/etc", "/library", "/tmp/x"]
)
def test_other_directories_are_free(spec: Read, path: str) -> None:
    settings = {"dataset": "s3://d/x", "dataset-path": path}
    assert list(directory_problems(spec(**settings))) == []
