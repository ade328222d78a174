"""An autoscaler's webhook sets the memory that podferry has raised: the pod ends with the raised one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.e2e.manifests import TRAINER, Object, container, job, pod
from tests.e2e.namespace import Namespace
from tests.e2e.patching_webhook import patching_webhook
from tests.e2e.trainers import COMMON, assert_unharmed

MIB = 1 << 20
NAME = "vpa-webhook-config"
"""As Vertical Pod Autoscaler registers it: called after podferry's."""
OWN = {"requests": {"memory": "48Mi", "cpu": "10m"}, "limits": {"memory": "64Mi"}}
"""Too little for the checkpoints, without the raise."""
TRAINS = f"""{COMMON}
for step in range(1, 9):
    write(step, {7 * MIB})
"""


def recommendation(requests: str, limits: str) -> dict[str, Any]:
    """A patch that sets all of the trainer's resources."""
    value = {"requests": {"memory": requests, "cpu": "20m"}, "limits": {"memory": limits}}
    return {"op": "add", "path": "/spec/containers/0/resources", "value": value}


def trainer(namespace: Namespace, name: str, kind: Any = pod) -> Object:
    annotations = namespace.training_annotations(lineage=f"{namespace.name}.{name}", checkpoint_size="64Mi")
    made: Object = kind(name, container(script=TRAINS, resources=OWN), annotations=annotations)
    return made


def memory(made: Mapping[str, Any]) -> dict[str, str]:
    """Of the trainer: what it requests, and its limit."""
    (found,) = (one["resources"] for one in made["spec"]["containers"] if one["name"] == TRAINER)
    return {kind: found[kind]["memory"] for kind in ("requests", "limits")}


@pytest.fixture
def raised(namespace: Namespace) -> Iterator[dict[str, str]]:
    """The trainer's memory without an autoscaler."""
    plain = trainer(namespace, "plain")
    namespace.start(plain)
    made = namespace.get("pod", "plain")
    yield memory(made)
    with contextlib.suppress(Exception):
        namespace.delete(plain, "--now")


@pytest.mark.parametrize("kind", [pod, job])
def test_a_recommendation_without_the_files_in_memory_is_repaired(
    namespace: Namespace, raised: dict[str, str], kind: Any
) -> None:
    """The pod runs: its checkpoints need the raised memory."""
    scaled = trainer(namespace, "scaled", kind)
    with patching_webhook(namespace, recommendation("40Mi", "56Mi"), name=NAME):
        namespace.start(scaled)
        outcome = namespace.outcome(scaled)
    made = outcome.pod.object
    assert memory(made) == raised
    assert made["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "20m"
    assert_unharmed(outcome)


def test_a_larger_recommendation_stays(namespace: Namespace, raised: dict[str, str]) -> None:
    with patching_webhook(namespace, recommendation("40Mi", "512Mi"), name=NAME):
        namespace.start(trainer(namespace, "scaled"))
        made = namespace.get("pod", "scaled")
    assert memory(made) == {"requests": raised["requests"], "limits": "512Mi"}
