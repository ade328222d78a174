"""Which repository a URI names."""

import pytest

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import parse_uri
from podferry.storage.huggingface.repository import Repository, quoted_revision, repository_of


@pytest.mark.parametrize(
    ("uri", "found"),
    [
        ("datasets/org/name", Repository("datasets", "org/name", "main")),
        ("datasets/org/name@v1/a/b@c", Repository("datasets", "org/name", "v1", "a/b@c")),
        ("spaces/org/name.x/a", Repository("spaces", "org/name.x", "main", "a")),
        ("org/name/datasets/x", Repository("models", "org/name", "main", "datasets/x")),
        ("models/org/name@refs/pr/12/a", Repository("models", "org/name", "refs/pr/12", "a")),
        ("models/org/name@refs/pr", Repository("models", "org/name", "refs", "pr")),
        ("models/org/name@a%2Fb/c", Repository("models", "org/name", "a/b", "c")),
    ],
)
def test_a_repository(uri, found):
    assert repository_of(parse_uri(f"hf://{uri}")) == found


@pytest.mark.parametrize(
    "uri", ["datasets", "datasets/org", "org", "../x/y", "datasets/org/..", "a/b@/c", "a b/c"]
)
def test_no_repository(uri):
    with pytest.raises(InvalidSpec):
        repository_of(parse_uri(f"hf://{uri}"))


def test_paths_at_the_server():
    model, space = (repository_of(parse_uri(f"hf://{uri}")) for uri in ("org/name", "spaces/org/name"))
    assert (model.api, model.page) == ("/api/models/org/name", "/org/name")
    assert (space.api, space.page) == ("/api/spaces/org/name", "/spaces/org/name")
    assert quoted_revision("refs/pr/1") == "refs/pr/1"
    assert quoted_revision("a/b c") == "a%2Fb%20c"
