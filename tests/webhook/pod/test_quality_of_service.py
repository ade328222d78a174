from typing import Any

import pytest

from podferry.webhook.pod.quality_of_service import has_pod_level_resources, is_guaranteed

FULL = {"cpu": "1", "memory": "2Gi"}


@pytest.mark.parametrize(
    ("resources", "guaranteed"),
    [
        ({"limits": FULL}, True),
        ({"limits": FULL, "requests": FULL}, True),
        ({"limits": FULL, "requests": {"cpu": "500m"}}, False),
        ({"limits": {"memory": "2Gi"}}, False),
        ({}, False),
        (None, False),
    ],
)
def test_one_container_decides(resources: dict[str, Any] | None, guaranteed: bool) -> None:
    full, other = {"resources": {"limits": FULL}}, {"resources": resources}
    assert is_guaranteed({"spec": {"containers": [full, other]}}) is guaranteed
    assert is_guaranteed({"spec": {"containers": [full], "initContainers": [other]}}) is guaranteed


def test_resources_of_the_pod_decide_alone() -> None:
    bare: dict[str, Any] = {"containers": [{}]}
    assert is_guaranteed({"spec": {**bare, "resources": {"limits": FULL}}})
    full = {"containers": [{"resources": {"limits": FULL}}]}
    burstable = {"limits": FULL, "requests": {"cpu": "100m"}}
    assert not is_guaranteed({"spec": {**full, "resources": burstable}})
    assert has_pod_level_resources({"spec": {**full, "resources": burstable}})
    assert not has_pod_level_resources({"spec": {**full, "resources": {"limits": {"hugepages-2Mi": "2Mi"}}}})


def test_a_pod_without_containers() -> None:
    assert not is_guaranteed({"spec": {"containers": []}})
