import pytest

from podferry.contract.uri import parse_uri
from podferry.sidecar.sync.preconditions import place_problems, unfit_names


@pytest.mark.parametrize(
    ("source", "destination", "text"),
    [
        ("s3://a/b", "s3://a/b", "one of them is in the other"),
        ("s3://a/b", "s3://a/b/c", "one of them is in the other"),
        ("s3://a/b/c", "s3://a/b", "one of them is in the other"),
        ("/data", "/data/copy", "one of them is in the other"),
        ("s3://a", "s3://a/b", "one of them is in the other"),
        ("s3://a/b", "https://a/b", "a web server takes no files"),
    ],
)
def test_places_that_cannot_be_synced(source, destination, text):
    (problem,) = place_problems(parse_uri(source), parse_uri(destination))
    assert text in problem.what


@pytest.mark.parametrize(
    ("source", "destination"),
    [("s3://a/b", "s3://a/bc"), ("s3://a/b", "az://a/b"), ("https://a/b", "/b"), ("s3://a/b", "s3://b/b")],
)
def test_places_that_can(source, destination):
    assert list(place_problems(parse_uri(source), parse_uri(destination))) == []


def test_keys_that_are_too_long_for_an_object_store_are_named():
    long = "/".join(["x" * 250] * 5)
    (problem,) = unfit_names(["a", long], parse_uri("s3://a/b"))
    assert "1,256 bytes, at most 1,024" in problem.measured
    assert unfit_names(["a", long], parse_uri("/b")) == []
    assert len(unfit_names([long + str(number) for number in range(99)], parse_uri("az://a/b"))) == 20
