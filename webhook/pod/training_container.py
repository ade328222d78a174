"""Finds the training container of a pod."""

from __future__ import annotations

from podferry.contract.code_version import UNKNOWN_CODE, CodeVersion, code_of_container
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.hidden_secrets import hide_secrets
from podferry.contract.pod_owner import KFP
from podferry.contract.spec import PREFIX
from podferry.contract.suggest import did_you_mean
from podferry.webhook.pod.pod_json import Json, annotations_of, container_index, containers_of

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
KFP_MAIN_CONTAINER = "main"
"""Runs the user's code in KFP steps, next to Argo's own containers."""
NAMED_BY_KIND = {
    KFP: KFP_MAIN_CONTAINER,
    "pytorchjob": "pytorch",
    "tfjob": "tensorflow",
    "xgboostjob": "xgboost",
    "paddlejob": "paddle",
    "jaxjob": "jax",
    "trainjob": "node",
}
"""The container that a kind's controller looks for.

Sources: training-operator, `DefaultContainerName` of each kind; Kubeflow Trainer, its runtimes.
"""
RAY = frozenset({"raycluster", "rayjob"})
"""The first container is Ray's, as KubeRay requires; a head that scales its cluster has another one."""


def training_container_of(pod: Json, requested: str | None, kind: str) -> int:
    """The index of the training container among the pod's containers.

    The one `requested` by annotation, else the one that the `kind` of the owner names, else kubectl's
    default, else the only one.

    Raises:
        InvalidSpec: There is none of that name, or the choice is ambiguous.
    """
    containers = containers_of(pod)
    names = [container.get("name", "") for container in containers]
    listed = f"The pod has: {', '.join(names)}"
    if requested is not None:
        at = container_index(containers, requested)
        if at is None:
            what = f"{PREFIX}container names a container that the pod does not have"
            raise InvalidSpec.of(what, hide_secrets(repr(requested)), did_you_mean(requested, names, listed))
        return at
    for name in (NAMED_BY_KIND.get(kind), annotations_of(pod).get(DEFAULT_CONTAINER)):
        at = container_index(containers, name) if name else None
        if at is not None:
            return at
    if kind in RAY and containers:
        return 0
    if len(containers) != 1:
        measured = f"{len(names)} containers: {', '.join(names)}"
        raise InvalidSpec.of(
            "it is unclear which container trains", measured, f"Set {PREFIX}container to its name"
        )
    return 0


def container_problems(pod: Json, requested: str | None, kind: str) -> tuple[Problem, ...]:
    """Why it is unclear which container trains, if it is, and if any container is known."""
    try:
        if containers_of(pod):
            training_container_of(pod, requested, kind)
    except InvalidSpec as error:
        return error.problems
    return ()


def training_code_of(pod: Json, container: str | None, kind: str) -> CodeVersion:
    """The code of the training container; unknown if there is none, which is reported elsewhere."""
    try:
        return code_of_container(containers_of(pod)[training_container_of(pod, container, kind)])
    except InvalidSpec:
        return UNKNOWN_CODE
