import copy
from collections.abc import Callable
from typing import Any

import pytest

from podferry.contract.errors import InvalidSpec
from podferry.webhook.pod.pod_schema import check_types

Pod = dict[str, Any]


def test_absent_members_null_and_unknown_fields(annotated_pod: Callable[..., Pod]) -> None:
    pod = annotated_pod()
    pod["spec"] |= {"initContainers": None, "volumes": None, "futureField": [1, None]}
    pod["spec"]["containers"][0] |= {"env": None, "resources": {"limits": {"cpu": 2, "memory": "1Gi"}}}
    before = copy.deepcopy(pod)
    check_types(pod)
    assert pod == before
    check_types({"spec": {"containers": []}})


@pytest.mark.parametrize(
    ("path", "junk", "place"),
    [
        (("metadata",), [], "$.metadata"),
        (("metadata", "annotations", "podferry.io/inject"), True, "$.metadata.annotations"),
        (("metadata", "ownerReferences"), [{"kind": "Job"}], "$.metadata.ownerReferences[0]"),
        (("spec",), None, "$.spec"),
        (("spec", "containers", 0, "env"), {}, "$.spec.containers[0].env"),
        (("spec", "affinity"), "x", "$.spec.affinity"),
        (("spec", "affinity"), {"podAffinity": []}, "$.spec.affinity.podAffinity"),
        (("spec", "containers", 0, "image"), 1.5, "$.spec.containers[0].image"),
        (("spec", "containers", 0, "volumeMounts"), [{"name": "x"}], "$.spec.containers[0].volumeMounts[0]"),
        (
            ("spec", "volumes"),
            [{"name": "x", "projected": {"sources": ["token"]}}],
            "$.spec.volumes[0].projected",
        ),
        (("metadata", "annotations"), {str(at): "" for at in range(4097)}, "$.metadata.annotations"),
        (("spec", "terminationGracePeriodSeconds"), "30s", "$.spec.terminationGracePeriodSeconds"),
    ],
)
def test_the_place_is_named(
    annotated_pod: Callable[..., Pod], path: tuple[Any, ...], junk: Any, place: str
) -> None:
    pod: Any = annotated_pod()
    node = pod
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = junk
    with pytest.raises(InvalidSpec) as refused:
        check_types(pod)
    (problem,) = refused.value.problems
    assert f"at `{place}" in problem.measured
