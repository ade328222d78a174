import pytest

from podferry.contract.cache_api import SOURCE_ANNOTATION, HolderStatus
from podferry.storage.memory.store import CONTENTS, Content
from tests.cli.cache.conftest import say

SERVICE = "/api/v1/namespaces/podferry/services/podferry-cache-digits"
FILES = {
    "d/train/a": b"1",
    "d/train/b/c": b"22",
    "d/training": b"333",
    "d/test": b"4",
    "d/.podferry/sync/1": b"5",
}


@pytest.fixture
def source(api):
    """The objects of the cache's source."""
    content = CONTENTS["rmr"] = Content()
    content.objects.update(FILES)
    set_source(api, "memory://rmr/d")
    yield content.objects
    del CONTENTS["rmr"]


def set_source(api, uri):
    api.objects[SERVICE]["metadata"]["annotations"][SOURCE_ANNOTATION] = uri


@pytest.fixture
def rmr(podferry, api):
    return lambda *words: podferry("cache", "rmr", "digits", *words, "--kubeconfig", api.kubeconfig)


@pytest.mark.parametrize("words", [(), ("--dry-run",)])
def test_without_yes_nothing_is_removed(rmr, source, words):
    said = rmr("train/", *words)
    assert said.code == 0
    assert said.out.splitlines() == ["remove train/a (1 B)", "remove train/b/c (2 B)"]
    assert "2 files, 3 B would be removed; nothing has been changed: add --yes" in said.err
    assert source.keys() == FILES.keys()


@pytest.mark.parametrize(
    ("path", "left"),
    [
        ("train", {"d/training", "d/test", "d/.podferry/sync/1"}),
        ("train/b/c", FILES.keys() - {"d/train/b/c"}),
        ("test", FILES.keys() - {"d/test"}),
    ],
)
def test_a_directory_or_a_file(rmr, source, path, left):
    said = rmr(path, "--yes")
    assert (said.code, said.out) == (0, "")
    assert said.err.startswith("removed: ")
    assert source.keys() == left
    assert rmr(path, "--yes").code == 1


@pytest.mark.parametrize("path", ["", "/", "..", "a/../b", "/etc", ".podferry", ".podferry/sync", "a//b"])
def test_what_is_no_path_in_a_dataset(rmr, source, path):
    said = rmr(path, "--yes")
    assert (said.code, "PATH: " in said.err) == (1, True)
    assert source.keys() == FILES.keys()


def test_several_paths(rmr, source):
    assert rmr("train", "train/a", "test", "--yes").err.startswith("removed: 3 files, 4 B")
    assert source.keys() == {"d/training", "d/.podferry/sync/1"}


def test_a_path_with_nothing(rmr, source):
    said = rmr("train", "tra", "est", "--yes")
    assert said.code == 1
    assert said.err.count("there is nothing at this path") == 2
    assert source.keys() == FILES.keys()
    assert rmr("train", "tra", "--yes", "--missing-ok").code == 0
    assert source.keys() == FILES.keys() - {"d/train/a", "d/train/b/c"}


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("memory://rmr/d#sha256=" + "0" * 64 + "&bytes=1&files=1", "the dataset is frozen"),
        ("https://example.org/d/", "nothing can be changed there"),
        ("file:///etc/ssl", "the source is in the holders' pods, not here"),
    ],
)
def test_sources_that_stay_as_they_are(rmr, api, source, uri, text):
    set_source(api, uri)
    said = rmr("train", "--yes")
    assert (said.code, text in said.err) == (1, True)
    assert source.keys() == FILES.keys()


def test_it_is_refused_while_pods_read(rmr, api, source):
    say(api, "podferry-0", HolderStatus("n1", (), (), readers=("team/train-0",)))
    said = rmr("train", "--yes")
    assert (said.code, "in use by 1 pod" in said.err) == (1, True)
    assert source.keys() == FILES.keys()
    assert rmr("train").code == 0
    assert rmr("train", "--yes", "--force").code == 0
    assert source.keys() != FILES.keys()
