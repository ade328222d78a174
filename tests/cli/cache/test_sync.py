import pytest

from podferry.contract.cache_api import REFRESH_PATH
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


def asked(api):
    """The requests for a refresh."""
    return [line for line in api.asked if line.startswith("POST") and "/proxy/v1/refresh" in line]


def test_the_holders_are_asked_to_take_what_has_changed(sync, target, api):
    api.holders[f"POST podferry-0 {REFRESH_PATH}"] = lambda _: (202, b"{}")
    assert "have not been asked" not in sync().err
    assert [line.partition("/pods/")[2][:10] for line in asked(api)] == ["podferry-0"]


def test_holders_that_cannot_be_asked_are_a_message(sync, target, api):
    api.holders[f"POST podferry-0 {REFRESH_PATH}"] = lambda _: (403, b"{}")
    said = sync()
    assert (said.code, target["d/a"]) == (0, b"a")
    assert "have not been asked to take what has changed: cannot create pods/proxy" in said.err


def test_a_dry_run(sync, target, api):
    assert "3 to move" in sync("--dry-run").err
    assert not target
    assert asked(api) == []


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
