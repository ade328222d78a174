import pytest

from podferry.webhook.guardrails import allows


@pytest.mark.parametrize(
    ("pattern", "place", "expected"),
    [
        ("*", "s3://any/../thing", True),
        ("s3://data/*", "s3://data/a/b", True),
        ("s3://data/*", "s3://data-secret/a", False),
        ("s3://data/", "s3://data", True),
        ("s3://data/", "s3://data/a/b", True),
        ("s3://data/", "s3://data-secret/a", False),
        ("s3://data/team", "s3://data/team/a", False),
        ("s3://data/team-?/*", "s3://data/team-7/x", True),
        ("file:///mnt/*", "file:///mnt/../etc", False),
        ("s3://DATA/*", "s3://data/x", False),
    ],
)
def test_allows(pattern: str, place: str, expected: bool) -> None:
    assert allows([pattern], place) is expected


def test_no_pattern_allows_nothing() -> None:
    assert not allows([], "s3://data")
