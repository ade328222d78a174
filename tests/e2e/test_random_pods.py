"""Random pods against the real API server: it calls the webhook, applies the patch and validates the result.

Dry runs: nothing is stored. `PODFERRY_RANDOM_PODS` has more seeds than the short run here.
"""

from __future__ import annotations

import copy
import json
import os
from collections import Counter
from collections.abc import Sequence

import pytest

from podferry.contract.spec import PREFIX
from podferry.webhook.injection.inject import InjectionOutcome
from tests.cluster.process import patient
from tests.e2e.api_server import ApiServer, api_server_of
from tests.e2e.figures import Figures
from tests.e2e.namespace import Namespace
from tests.support.undistributed import load

load("faults")

from faults.random_pods import Pod, known_shapes, random_pod  # noqa: E402 - loaded above

COUNT = int(os.environ.get("PODFERRY_RANDOM_PODS", "600"))
CREATED = 201
OUTCOMES = frozenset(InjectionOutcome)
OURS = ("podferry: ", "podferry's ")
"""In the refusals of the webhook and of the admission policy."""


def creatable(seed: int, shapes: Sequence[Pod], namespace: str) -> Pod:
    """The random pod, with locations that the policy allows, and without objects that this cluster lacks."""
    pod: Pod = json.loads(json.dumps(random_pod(seed, shapes)).replace("s3://", "s3://e2e/"))
    pod["metadata"]["namespace"] = namespace
    for name in ("serviceAccountName", "serviceAccount"):
        pod["spec"].pop(name, None)
    return pod


def without_podferry(pod: Pod) -> Pod:
    """The pod without annotations of podferry."""
    plain = copy.deepcopy(pod)
    annotations = plain["metadata"].get("annotations") or {}
    plain["metadata"]["annotations"] = {
        key: text for key, text in annotations.items() if not key.startswith(PREFIX)
    }
    return plain


def outcome(api_server: ApiServer, pod: Pod) -> str:
    """What comes of a pod; the API server's own words if a patch makes it invalid."""
    if api_server.create(without_podferry(pod), dry_run=True)[0] != CREATED:
        return "invalid anyway"
    status, answer = api_server.create(pod, dry_run=True)
    if status != CREATED:
        return "denied" if any(words in answer for words in OURS) else f"Pod {answer}"
    found = answer["metadata"].get("annotations", {}).get(f"{PREFIX}status", "untouched")
    return found if found in OUTCOMES else "untouched"


@pytest.mark.timeout(patient(60 + COUNT // 5))
def test_no_patch_makes_a_pod_invalid(namespace: Namespace, figures: Figures) -> None:
    """Whatever the API server accepts, it also accepts as podferry patches it, or podferry says why not."""
    shapes, seen = known_shapes(), Counter[str]()
    with api_server_of(namespace) as api_server:
        for seed in range(1, COUNT + 1):
            seen[outcome(api_server, creatable(seed, shapes, namespace.name))] += 1
    broken = [one for one in seen if one.startswith("Pod ")]
    figures.record(f"{COUNT} random pods on the API server", dict(seen))
    assert not broken, "\n".join(broken)
    assert seen["injected"] > COUNT // 20
    assert seen["denied"] > COUNT // 20
