"""Another webhook changes an injected pod: the API server calls podferry's again."""

from __future__ import annotations

from typing import Any

from podferry.webhook.pod.pod_json import GATE, SIDECAR
from tests.e2e.manifests import container, job, pod
from tests.e2e.namespace import Namespace
from tests.e2e.patching_webhook import patching_webhook

MARK = {"op": "add", "path": "/metadata/annotations/example.com~1other", "value": "called"}
STRIP = {"op": "remove", "path": "/spec/initContainers/0/restartPolicy"}
"""What webhooks do that decode pods with types which do not know the field."""
OTHER_PROGRAM = {"op": "replace", "path": "/spec/initContainers/0/args/0", "value": "other"}


def injected(namespace: Namespace, pod: dict[str, Any]) -> None:
    sidecar, gate = pod["spec"]["initContainers"]
    assert pod["metadata"]["annotations"]["example.com/other"] == "called"
    assert (sidecar["name"], sidecar["restartPolicy"], gate["name"]) == (SIDECAR, "Always", GATE)


def test_a_restart_policy_that_is_stripped_is_put_back(namespace: Namespace) -> None:
    """The second call recognizes the stamp of the first, of pods with and without a name."""
    settings = namespace.training_annotations()
    bare = pod("bare", container(command=["true"]), annotations=settings)
    of_job = job("digits", container(command=["true"]), annotations=settings)
    with patching_webhook(namespace, MARK, STRIP):
        namespace.start(bare, of_job)
        found = [*namespace.pods(bare), *namespace.until("the Job's pod", lambda: namespace.pods(of_job))]
    for one in found:
        injected(namespace, one)
    assert namespace.outcome(of_job).succeeded


def test_another_command_line_is_refused(namespace: Namespace) -> None:
    manifest = pod("bare", container(command=["true"]), annotations=namespace.training_annotations())
    with patching_webhook(namespace, MARK, OTHER_PROGRAM):
        answer = namespace.create(manifest)
    assert answer.code == 1
    assert "it is a copy of another one, or has been changed" in answer.errors
