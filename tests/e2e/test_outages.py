"""What happens to pods and Jobs while something is wrong with the webhook: a table of outages."""

from __future__ import annotations

import json
import time

import pytest

from tests.cluster.process import patient
from tests.e2e.figures import Figures
from tests.e2e.install import await_webhook
from tests.e2e.manifests import Object, container, job, pod, podferry_annotations
from tests.e2e.namespace import Namespace
from tests.e2e.outages import OUTAGES
from tests.e2e.site import Site

OWNER = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "name": "digits",
    "uid": "0c1f7a4e-0000-4000-8000-000000000001",
}
HEALTHY = {"opted in": "injected", "by rule": "injected", "others": "untouched", "invalid Job": "refused"}
UNREACHABLE = {
    "opted in": "no webhook",
    "by rule": "untouched",
    "others": "untouched",
    "invalid Job": "admitted",
}
EXPECTED = dict.fromkeys(OUTAGES, (HEALTHY,)) | {
    "down": (UNREACHABLE,),
    "slow": (UNREACHABLE,),
    "replica killed": (HEALTHY, UNREACHABLE),  # a call may reach the dead one
}
"""Of each outage: the outcomes that a manifest may have."""


def manifests(namespace: Namespace) -> dict[str, Object]:
    """One of each kind that the webhook treats differently."""
    one = container(command=["true"])
    by_rule = pod("by-rule", one, labels={"app": "digits"})
    by_rule["metadata"]["ownerReferences"] = [OWNER]
    wanted = namespace.training_annotations(checkpoints=f"by-rule/{namespace.name}")
    return {
        "opted in": pod("opted-in", one, annotations=wanted),
        "by rule": by_rule,
        "others": pod("other", one),
        "invalid Job": job("invalid", one, annotations=podferry_annotations(datset="x")),
    }


def outcome(namespace: Namespace, manifest: Object) -> str:
    """What comes of its creation, which is a dry run."""
    answer = namespace.try_create(manifest)
    if "failed calling webhook" in answer.errors:
        return "no webhook"
    if answer.code:
        return "refused" if "podferry.io/datset: unknown annotation" in answer.errors else answer.errors
    if manifest["kind"] == "Job":
        return "admitted"
    annotations = json.loads(answer.output)["metadata"].get("annotations") or {}
    return str(annotations.get("podferry.io/status", "untouched"))


@pytest.mark.timeout(patient(120))
@pytest.mark.parametrize("outage", OUTAGES)
def test_outage(site: Site, figures: Figures, outage: str) -> None:
    """After each, the webhook serves again."""
    section = f"webhook: {outage}"
    figures.record(section, {"not run": "the cluster does not allow it"})  # until it is
    with site.namespace({"podferry.test/rules": "training"}) as namespace:
        with OUTAGES[outage](site.cluster):
            found, seconds = {}, {}
            for name, manifest in manifests(namespace).items():
                started = time.monotonic()
                found[name] = outcome(namespace, manifest)
                seconds[f"{name}, s"] = round(time.monotonic() - started, 1)
        figures.record(section, found | seconds)
        for name, one in found.items():
            assert one in {expected[name] for expected in EXPECTED[outage]}, name
        await_webhook(site.cluster)
        again = {name: outcome(namespace, one) for name, one in manifests(namespace).items()}
    assert again == HEALTHY
