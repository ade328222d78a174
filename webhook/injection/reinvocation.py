"""Re-admission of a pod that was already injected.

The API server calls again after another webhook has changed the pod (`reinvocationPolicy: IfNeeded`), and
people apply the output of `kubectl get pod -o yaml`. `Signer.verify` separates the two.
"""

from __future__ import annotations

from podferry.contract.errors import InvalidSpec
from podferry.webhook.pod.json_patch import Draft
from podferry.webhook.pod.pod_json import (
    GATE,
    SIDECAR,
    Json,
    annotations_of,
    container_index,
    init_containers_of,
    podferry_names,
)
from podferry.webhook.pod.stamp import INJECTED, REFUSED, REMEDY, SHARED, STATUS_STAMP


def is_injected(pod: Json) -> bool:
    """Whether it has anything that podferry injects."""
    return STATUS_STAMP in annotations_of(pod) or any(podferry_names(pod))


def repair(pod: Json) -> Draft:
    """Repair a pod that was injected or refused before; usually there is nothing to do.

    Some webhooks decode pods with types that do not know `restartPolicy` of init containers, and drop it: the
    sidecar would then have to complete before anything else starts.

    Raises:
        InvalidSpec: Parts of the injection are missing.
    """
    status, containers = annotations_of(pod).get(STATUS_STAMP), init_containers_of(pod)
    sidecar, gate = container_index(containers, SIDECAR), container_index(containers, GATE)
    draft = Draft(pod)
    if (status == REFUSED and gate is not None) or status == SHARED:
        return draft
    if status != INJECTED or sidecar is None or gate is None:
        what = "the pod has only part of what podferry injects"
        raise InvalidSpec.of(what, ", ".join(podferry_names(pod)) or f"only {STATUS_STAMP}", REMEDY)
    draft.set(("spec", "initContainers", sidecar, "restartPolicy"), "Always")
    return draft
