"""Re-admission of a pod that was already injected.

The API server calls again after another webhook has changed the pod (`reinvocationPolicy: IfNeeded`), and
people apply the output of `kubectl get pod -o yaml`.
"""

from __future__ import annotations

from podferry.contract.annotation_keys import STAMPS
from podferry.contract.errors import InvalidSpec
from podferry.contract.spec import PREFIX, FerrySpec
from podferry.contract.spec_json import encode_spec
from podferry.webhook.json_patch import Draft
from podferry.webhook.pod_json import (
    GATE,
    SIDECAR,
    Json,
    annotations_of,
    container_index,
    init_containers_of,
    is_controlled,
    podferry_names,
)

STATUS_STAMP, SPEC_STAMP, POLICY_HASH_STAMP = f"{PREFIX}status", f"{PREFIX}spec", f"{PREFIX}policy-hash"
INJECTED, REFUSED = "injected", "refused"
REMEDY = f"Remove podferry's containers and volumes and {', '.join(sorted(PREFIX + name for name in STAMPS))}"


def is_refused(pod: Json) -> bool:
    """Whether it already has a gate that reports the reason."""
    refused = annotations_of(pod).get(STATUS_STAMP) == REFUSED
    # A bare pod is never refused: it is a copy of one that was, and may have been corrected.
    return refused and is_controlled(pod) and container_index(init_containers_of(pod), GATE) is not None


def is_injected(pod: Json) -> bool:
    """Whether it has anything that podferry injects."""
    return STATUS_STAMP in annotations_of(pod) or any(podferry_names(pod))


def repair(pod: Json, spec: FerrySpec) -> Draft:
    """Repair a pod that was injected before; usually there is nothing to do.

    Some webhooks decode pods with types that do not know `restartPolicy` of init containers, and drop it: the
    sidecar would then have to complete before anything else starts.

    Raises:
        InvalidSpec: It was injected for other annotations, or parts of the injection are missing.
    """
    stamps, containers = annotations_of(pod), init_containers_of(pod)
    sidecar, gate = container_index(containers, SIDECAR), container_index(containers, GATE)
    if stamps.get(STATUS_STAMP) != INJECTED or sidecar is None or gate is None:
        what = "the pod has only part of what podferry injects"
        raise InvalidSpec.of(what, ", ".join(podferry_names(pod)) or f"only {STATUS_STAMP}", REMEDY)
    if stamps.get(SPEC_STAMP) != encode_spec(spec).decode():
        what = "podferry was injected into the pod for other annotations than it has now"
        raise InvalidSpec.of(what, f"{SPEC_STAMP}: {stamps.get(SPEC_STAMP)}", REMEDY)
    draft = Draft(pod)
    draft.set(("spec", "initContainers", sidecar, "restartPolicy"), "Always")
    return draft
