"""A pod that podferry has already had in hand.

The API server asks again when another webhook has changed the pod (`reinvocationPolicy: IfNeeded`), and
people apply what `kubectl get pod -o yaml` showed.
"""

from __future__ import annotations

from podferry.contract.annotation_keys import STAMPS
from podferry.contract.errors import InvalidSpec
from podferry.contract.spec import PREFIX, FerrySpec, encode_spec
from podferry.webhook.patch import Draft
from podferry.webhook.pod_json import (
    GATE,
    SIDECAR,
    Json,
    annotations_of,
    init_containers_of,
    is_controlled,
    named,
    our_names,
)

STATUS, SPEC, POLICY_HASH = f"{PREFIX}status", f"{PREFIX}spec", f"{PREFIX}policy-hash"
INJECTED, REFUSED = "injected", "refused"
REMEDY = f"Remove podferry's containers and volumes and {', '.join(sorted(PREFIX + name for name in STAMPS))}"


def is_refused(pod: Json) -> bool:
    """Whether a gate in it tells the reason already."""
    refused = annotations_of(pod).get(STATUS) == REFUSED
    # A bare pod was never refused: it is a copy of one, and its wishes may have been corrected.
    return refused and is_controlled(pod) and named(init_containers_of(pod), GATE) is not None


def has_traces(pod: Json) -> bool:
    """Whether something in it is ours."""
    return STATUS in annotations_of(pod) or any(our_names(pod))


def repair(pod: Json, spec: FerrySpec) -> Draft:
    """What has to be put right in a pod that was injected before: most often nothing.

    Some webhooks decode a pod into types that do not know `restartPolicy` of an init container, and lose
    it: the sidecar would then run to its end before anything else starts.

    Raises:
        InvalidSpec: It was injected for other wishes, or parts of it are gone.
    """
    stamps, containers = annotations_of(pod), init_containers_of(pod)
    sidecar, gate = named(containers, SIDECAR), named(containers, GATE)
    if stamps.get(STATUS) != INJECTED or sidecar is None or gate is None:
        what = "the pod has a part of what podferry injects, not all of it"
        raise InvalidSpec.of(what, ", ".join(our_names(pod)) or f"{STATUS} alone", REMEDY)
    if stamps.get(SPEC) != encode_spec(spec).decode():
        what = "podferry was injected into the pod for other wishes than it has now"
        raise InvalidSpec.of(what, f"{SPEC}: {stamps.get(SPEC)}", REMEDY)
    draft = Draft(pod)
    draft.set(("spec", "initContainers", sidecar, "restartPolicy"), "Always")
    return draft
