import pytest

from podferry.webhook.pod.namespace import Namespace


@pytest.mark.parametrize(
    ("globs", "expected"),
    [([], True), (["team-a"], True), (["team-*"], True), (["x", "*-a"], True), (["team"], False)],
)
def test_names(globs: list[str], expected: bool) -> None:
    assert Namespace("team-a").is_named(globs) is expected


@pytest.mark.parametrize(
    ("labels", "expected"),
    [({}, True), ({"tier": "trial"}, True), ({"tier": "prod"}, False), ({"other": "trial"}, False)],
)
def test_labels(labels: dict[str, str], expected: bool) -> None:
    assert Namespace("a", {"tier": "trial", "cost": "7"}).has_labels(labels) is expected
