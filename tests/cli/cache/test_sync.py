import pytest

from podferry.storage.memory.store import CONTENTS, Content
from tests.cli.cache.test_rmr import set_source


@pytest.fixture
def target(api):
    """The objects of the cache's source."""
    CONTENTS["cached"] = Content()
    set_source(api, "memory://cached/d")
    yield CONTENTS["cached"].objects
    del CONTENTS["cached"]


@pytest.fixture
def sync(podferry, api, tmp_path):
    (tmp_path / "data").mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / "data" / name).write_text(name)
    words = ("cache", "sync", "digits", tmp_path / "data")
    return lambda *more: podferry(*words, *more, "--kubeconfig", api.kubeconfig)


def test_the_source_of_the_cache_becomes_equal(sync, target, tmp_path):
    assert "3 files moved" in sync().err
    assert target["d/a"] == b"a"
    (tmp_path / "data/b").unlink()
    assert "0 files moved, 0 B" in sync("--delete", "--shard", "0/2").err
    assert {name for name in target if ".podferry" not in name} == {"d/a", "d/c"}


def test_a_dry_run(sync, target):
    assert "3 to move" in sync("--dry-run").err
    assert not target


@pytest.mark.parametrize(
    ("source", "text"),
    [("file:///etc/ssl", "in the holders' pods"), ("https://x.org/d/", "nothing can be changed")],
)
def test_sources_that_stay_as_they_are(sync, api, source, text):
    set_source(api, source)
    said = sync()
    assert (said.code, text in said.err) == (1, True)


def test_no_such_cache(podferry, api):
    said = podferry("cache", "sync", "other", "s3://a/b", "--kubeconfig", api.kubeconfig)
    assert "there is no cache other in the namespace podferry" in said.err
