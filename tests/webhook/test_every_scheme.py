"""A pod has no more rights for one scheme than for another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podferry.contract.schemes import STORE_SCHEMES
from podferry.webhook.injection.inject import InjectionOutcome, inject
from podferry.webhook.injection.security_context import ENFORCE, RESTRICTED
from podferry.webhook.pod.json_patch import apply
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.pod.pod_json import init_containers_of
from podferry.webhook.policy.policy import Policy

TENANT = Namespace("team", {ENFORCE: RESTRICTED})
PLACES = {
    "hf": "hf://datasets/team/digits",
    "abfs": "abfs://data@account.dfs.core.windows.net/digits",
    "abfss": "abfss://data@account.dfs.core.windows.net/digits",
}
READ_ONLY = ("http", "https", "hf")
VOLUMES = {"emptyDir", "secret", "persistentVolumeClaim"}
"""All are allowed by restricted Pod Security. Source: Kubernetes, "Pod Security Standards"."""
Pod = dict[str, Any]


def place(scheme: str, name: str) -> str:
    return f"{PLACES.get(scheme, f'{scheme}://data/digits')}/{name}"


@pytest.fixture
def restricted(annotated_pod: Callable[..., Pod], policy: Policy) -> Callable[[str], Pod]:
    """The injected pod of a user in a restricted namespace, which reads and, if it can, writes a scheme."""

    def make(scheme: str) -> Pod:
        settings = {"dataset": place(scheme, "in"), "dataset_size": "1Gi", "secret": "store"}
        if scheme not in READ_ONLY:
            settings |= {"checkpoints": place(scheme, "out"), "checkpoint_size": "1Gi"}
        pod = annotated_pod(**settings)
        pod["spec"]["securityContext"] = {"runAsUser": 1000, "runAsNonRoot": True}
        decision = inject(pod, TENANT, policy)
        assert decision.outcome is InjectionOutcome.INJECTED, decision.problems
        return apply(pod, decision.patch)

    return make


@pytest.mark.parametrize("scheme", STORE_SCHEMES)
def test_containers_have_the_rights_of_those_for_s3(scheme: str, restricted: Callable[[str], Pod]) -> None:
    rights = ("name", "securityContext", "ports", "envFrom", "volumeDevices", "lifecycle", "command")
    for own, usual in zip(
        init_containers_of(restricted(scheme)), init_containers_of(restricted("s3")), strict=True
    ):
        assert [own.get(key) for key in rights] == [usual.get(key) for key in rights]
        context = own["securityContext"]
        assert (context["runAsUser"], context["runAsNonRoot"]) == (1000, True)
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert not context["allowPrivilegeEscalation"]
        assert context["readOnlyRootFilesystem"]
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}


@pytest.mark.parametrize("scheme", STORE_SCHEMES)
def test_volumes_are_those_that_restricted_namespaces_allow(
    scheme: str, restricted: Callable[[str], Pod]
) -> None:
    pod = restricted(scheme)
    kinds = [kind for volume in pod["spec"]["volumes"] for kind in volume.keys() - {"name"}]
    assert set(kinds) <= VOLUMES
    assert kinds.count("persistentVolumeClaim") == (scheme == "pvc")
    untouched = {
        "hostNetwork",
        "hostPID",
        "serviceAccountName",
        "automountServiceAccountToken",
        "hostAliases",
    }
    assert not untouched & pod["spec"].keys()


@pytest.mark.parametrize("scheme", STORE_SCHEMES)
def test_the_trainer_sees_neither_secret_nor_claim(scheme: str, restricted: Callable[[str], Pod]) -> None:
    pod = restricted(scheme)
    (trainer,) = pod["spec"]["containers"]
    private = {
        volume["name"]
        for volume in pod["spec"]["volumes"]
        if {"secret", "persistentVolumeClaim"} & volume.keys()
    }
    assert private
    assert not private & {mount["name"] for mount in trainer["volumeMounts"]}
