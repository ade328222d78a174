from typing import Any

import pytest

from podferry.cache.manifests.cache_spec import CacheSpec
from podferry.cache.manifests.source_problems import source_problems


def problems(source: str, **more: Any) -> list[str]:
    return [str(one) for one in source_problems(CacheSpec("digits", "team", source, 1, "image", **more))]


@pytest.mark.parametrize(
    "source", ["s3://b/c", "hf://datasets/d/e", "pvc://datasets/digits", "pvc://datasets"]
)
def test_holders_reach_stores_and_claims_of_their_namespace(source: str) -> None:
    assert problems(source) == []
    assert problems(source, readers=("team",)) == []


@pytest.mark.parametrize(
    "source", ["file:///data", "memory://a/b", "nfs://nas/export", "image://a/b:1", "pvc://datasets/../x"]
)
def test_what_holders_do_not_reach_is_named(source: str) -> None:
    [problem] = problems(source)
    assert problem.startswith("the source: ")
    assert source in problem


def test_other_namespaces_have_other_claims() -> None:
    [problem] = problems("pvc://datasets/digits", readers=("lab-*", "team"))
    assert "pvc://datasets/digits of team, readers lab-*" in problem
    assert problems("s3://datasets/digits", readers=("lab-*", "team")) == []


def test_a_frozen_source_is_not_listed_again() -> None:
    frozen = "s3://b/c#sha256=" + "0" * 64 + "&bytes=1&files=1"
    [problem] = problems(frozen, refresh=60)
    assert problem == "a frozen dataset does not change (refresh after 60 s). Leave refresh out."
    assert problems("s3://b/c", refresh=60) == problems(frozen) == []
