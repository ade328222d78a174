"""Which container trains."""

from __future__ import annotations

from podferry.contract.errors import InvalidSpec
from podferry.contract.pod_owner import KFP
from podferry.contract.spec import PREFIX
from podferry.contract.suggest import did_you_mean
from podferry.webhook.pod_json import Json, annotations_of, container_index, containers_of

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
KFP_MAIN_CONTAINER = "main"
"""Where KFP runs the user's code; Argo's own containers stand beside it."""


def training_container_of(pod: Json, wished: str | None, kind: str) -> int:
    """The index of the training container among the pod's containers.

    The one that the user names, else `main` of a KFP step, else the default container of kubectl, else the
    only one.

    Args:
        pod: The pod.
        wished: What `podferry.io/container` says.
        kind: Of the pod's origin.

    Raises:
        InvalidSpec: None of that name, or several and nothing says which.
    """
    containers = containers_of(pod)
    names = [container.get("name", "") for container in containers]
    listed = f"The pod has: {', '.join(names)}"
    if wished is not None:
        at = container_index(containers, wished)
        if at is None:
            what = f"{PREFIX}container names a container that the pod does not have"
            raise InvalidSpec.of(what, repr(wished), did_you_mean(wished, names, listed))
        return at
    for name in (KFP_MAIN_CONTAINER if kind == KFP else None, annotations_of(pod).get(DEFAULT_CONTAINER)):
        at = container_index(containers, name) if name else None
        if at is not None:
            return at
    if len(containers) != 1:
        what = "nothing says which container trains"
        raise InvalidSpec.of(what, f"{len(names)} containers: {', '.join(names)}", _remedy())
    return 0


def _remedy() -> str:
    return f"Write its name into {PREFIX}container"
