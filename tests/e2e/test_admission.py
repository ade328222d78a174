"""Pods that podferry leaves alone, and pods that it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cluster.process import ClusterError
from tests.e2e import install
from tests.e2e.manifests import Object, container, job, pod, podferry_annotations
from tests.e2e.namespace import Namespace
from tests.e2e.site import Site

MISSPELLED = podferry_annotations(
    datset="s3://e2e/datasets/digits", checkpoints="gs//results", checkpoint_size="lots"
)
REASONS = ("podferry.io/datset", "podferry.io/checkpoints", "podferry.io/checkpoint-size")
EXIT_NEVER = 78
MADE_BY_THE_SERVER = ("uid", "creationTimestamp", "resourceVersion", "managedFields")


def plain(name: str = "plain") -> Object:
    """An ordinary pod, with everything that podferry would change if it opted in."""
    one = container(
        command=["true"],
        resources={"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "32Mi"}},
        env=[{"name": "EPOCHS", "value": "3"}],
        volumeMounts=[{"name": "scratch", "mountPath": "/scratch"}],
    )
    volume: dict[str, Any] = {"name": "scratch", "emptyDir": {}}
    annotations = {"example.com/podferry.io": "no key of podferry's"}
    return pod(
        name, one, annotations=annotations, volumes=[volume], initContainers=[{**one, "name": "first"}]
    )


def created(namespace: Namespace, manifest: Object) -> dict[str, Any]:
    """The created pod, without what differs between creations."""
    made: dict[str, Any] = json.loads(
        namespace.kubectl("create", "-o", "json", "-f", "-", stdin=json.dumps(manifest))
    )
    namespace.delete(manifest, "--now")
    for name in MADE_BY_THE_SERVER:
        made["metadata"].pop(name, None)
    return made


def test_a_pod_without_annotations_is_unchanged(site: Site, namespace: Namespace) -> None:
    """Nothing but uid and times differs."""
    opted_out = pod(
        "out", container(command=["true"]), annotations=podferry_annotations(inject="false", dataset="x")
    )
    with_podferry = [created(namespace, one) for one in (plain(), opted_out)]
    with install.not_registered(site.cluster):
        without = [created(namespace, one) for one in (plain(), opted_out)]
    assert with_podferry == without


def test_without_its_webhook_only_pods_that_opt_in_are_refused(site: Site, namespace: Namespace) -> None:
    """Others are created; a Job's pod is created, with its sidecar, once the webhook is back."""
    waiting = job("later", container(command=["true"]), annotations=namespace.training_annotations())
    with install.webhook_down(site.cluster):
        namespace.start(plain())
        refused = namespace.create(
            pod("opted-in", container(command=["true"]), annotations=namespace.training_annotations())
        )
        assert refused.code == 1
        assert 'failed calling webhook "pods.podferry.io"' in refused.errors
        assert 'no endpoints available for service "podferry-webhook"' in refused.errors
        namespace.start(waiting)
        namespace.until("an event of the Job", lambda: _failed_create(namespace, "later"), 30)
        assert namespace.pods(waiting) == []
    made = namespace.pod(waiting, timeout=60)
    assert made.object["metadata"]["annotations"]["podferry.io/status"] == "injected"


def _failed_create(namespace: Namespace, name: str) -> str | None:
    found = [one["message"] for one in namespace.events(name) if one["reason"] == "FailedCreate"]
    return next((text for text in found if "pods.podferry.io" in text), None)


def test_a_bare_pod_with_invalid_annotations_is_denied_with_all_reasons(namespace: Namespace) -> None:
    answer = namespace.create(pod("wrong", container(command=["true"]), annotations=MISSPELLED))
    assert answer.code == 1
    assert [reason for reason in REASONS if reason not in answer.errors] == []
    with pytest.raises(ClusterError, match="NotFound"):
        namespace.get("pod", "wrong")


def test_a_job_with_invalid_annotations_is_denied_with_all_reasons(namespace: Namespace) -> None:
    answer = namespace.create(job("wrong", container(command=["true"]), annotations=MISSPELLED))
    assert answer.code == 1
    assert [reason for reason in REASONS if reason not in answer.errors] == []


def test_a_controllers_pod_with_invalid_annotations_fails_visibly(namespace: Namespace) -> None:
    """A Job that a CronJob makes is not validated: its pod's gate reports why, and the Job fails."""
    # Without `containerName`, which has to be one of the template's own.
    stop = {"operator": "In", "values": [EXIT_NEVER]}
    rules = {"podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": stop}]}}
    template = job("nightly", container(command=["true"]), annotations=MISSPELLED, backoff=3, job_spec=rules)
    schedule = {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": template["spec"]}}
    namespace.start(
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"}, "spec": schedule}
    )
    namespace.kubectl("create", "job", "nightly", "--from=cronjob/nightly")
    outcome = namespace.outcome(template)
    assert (outcome.phase, outcome.reason) == ("Failed", "PodFailurePolicy")
    assert len(outcome.pods) == 1
    gate = outcome["podferry-gate"]
    assert gate.exit_code == EXIT_NEVER
    assert [reason for reason in REASONS if reason not in gate.message] == []
    assert outcome.pod.object["metadata"]["annotations"]["podferry.io/status"] == "refused"
    assert outcome["trainer"].exit_code is None
