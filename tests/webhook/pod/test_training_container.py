from typing import Any

import pytest

from podferry.contract.errors import InvalidSpec
from podferry.webhook.pod.training_container import (
    DEFAULT_CONTAINER,
    container_problems,
    training_container_of,
)


def pod_of(*names: str, default: str | None = None) -> dict[str, Any]:
    annotations = {} if default is None else {DEFAULT_CONTAINER: default}
    return {
        "metadata": {"annotations": annotations},
        "spec": {"containers": [{"name": name} for name in names]},
    }


@pytest.mark.parametrize(
    ("pod", "requested", "kind", "expected"),
    [
        (pod_of("train"), None, "Job", 0),
        (pod_of("proxy", "train"), "train", "Job", 1),
        (pod_of("proxy", "train", default="train"), None, "Job", 1),
        (pod_of("proxy", "train", default="train"), "proxy", "Job", 0),
        (pod_of("wait", "main", default="wait"), None, "kfp", 1),
        (pod_of("wait", "main", default="wait"), None, "Job", 0),
        (pod_of("logs", "pytorch"), None, "pytorchjob", 1),
        (pod_of("logs", "tensorflow", default="logs"), None, "tfjob", 1),
        (pod_of("logs", "node"), None, "trainjob", 1),
        (pod_of("ray-head", "autoscaler"), None, "rayjob", 0),
        (pod_of("train", default="gone"), None, "Job", 0),
    ],
)
def test_the_more_explicit_choice_wins(
    pod: dict[str, Any], requested: str | None, kind: str, expected: int
) -> None:
    assert training_container_of(pod, requested, kind) == expected


def test_an_ambiguous_choice_is_reported() -> None:
    with pytest.raises(InvalidSpec, match="2 containers: proxy, train"):
        training_container_of(pod_of("proxy", "train", default="gone"), None, "Job")


def test_a_misspelled_container_is_reported_with_a_suggestion() -> None:
    with pytest.raises(InvalidSpec, match=r"'trian'.*Did you mean 'train'"):
        training_container_of(pod_of("proxy", "train"), "trian", "Job")


def test_problems_only_if_the_containers_are_known() -> None:
    two = {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}
    (problem,) = container_problems(two, None, "pod")
    assert "2 containers: a, b" in str(problem)
    assert container_problems(two, "b", "pod") == ()
    assert container_problems({}, None, "pod") == ()


def test_a_password_in_the_place_of_a_name_is_not_shown() -> None:
    with pytest.raises(InvalidSpec) as caught:
        training_container_of(pod_of("train"), "sftp://me:pa55@nas/x", "Job")
    assert "pa55" not in str(caught.value)
