"""Go encodes empty members as null or leaves them out: both are read as empty."""

from typing import Any

import pytest

from podferry.webhook.pod.pod_json import (
    all_containers_of,
    annotations_of,
    containers_of,
    escape_dollars,
    init_containers_of,
    is_controlled,
    labels_of,
    mounts_of,
    podferry_names,
    volumes_of,
)

EMPTY: list[dict[str, Any]] = [
    {},
    {"metadata": None, "spec": None},
    {
        "metadata": {"annotations": None, "labels": None, "ownerReferences": None},
        "spec": {"containers": None, "initContainers": None, "volumes": None},
    },
]


@pytest.mark.parametrize("pod", EMPTY)
def test_what_is_null_or_missing_is_empty(pod: dict[str, Any]) -> None:
    assert annotations_of(pod) == labels_of(pod) == volumes_of(pod) == {}
    assert containers_of(pod) == init_containers_of(pod) == all_containers_of(pod) == mounts_of(pod) == []
    assert not is_controlled(pod)
    assert list(podferry_names(pod)) == []


def test_podferrys_containers_are_found_in_all_places() -> None:
    pod = {
        "spec": {
            "initContainers": [{"name": "podferry"}, {"name": "podferry-of-mine"}],
            "containers": [{"name": "train"}, {"name": "podferry-gate"}],
            "volumes": [{"name": "podferry-data"}],
        }
    }
    found = list(podferry_names(pod))
    assert found == ["container podferry", "container podferry-gate"]


def test_dollars_are_doubled() -> None:
    assert escape_dollars("$(HOME) costs $5, $$") == "$$(HOME) costs $$5, $$$$"
