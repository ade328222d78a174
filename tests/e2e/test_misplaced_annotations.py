"""Annotations on a workload itself instead of its pods: `kubectl apply` says so, and refuses nothing."""

from __future__ import annotations

import json

import pytest

from tests.e2e.manifests import Object, container, job, podferry_annotations
from tests.e2e.namespace import Namespace

ANNOTATIONS = podferry_annotations(dataset="s3://e2e/datasets/digits", dataset_size="1Mi")
IDLE = container(command=["sleep", "600"])
LABELS = {"app": "idle"}


def workload(kind: str, annotations: dict[str, str]) -> Object:
    """A workload with these annotations on itself."""
    made = job("idle", IDLE)
    if kind == "CronJob":
        made["spec"] = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": made["spec"]}}
    elif kind == "Deployment":
        template = {"metadata": {"labels": LABELS}, "spec": {"containers": [IDLE]}}
        made["spec"] = {"replicas": 0, "selector": {"matchLabels": LABELS}, "template": template}
    group = "apps/v1" if kind == "Deployment" else "batch/v1"
    return {
        **made,
        "apiVersion": group,
        "kind": kind,
        "metadata": {"name": "idle", "annotations": annotations},
    }


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("Deployment", "spec.template"),
        ("Job", "spec.template"),
        ("CronJob", "spec.jobTemplate.spec.template"),
    ],
)
def test_a_warning_says_where_they_belong(namespace: Namespace, kind: str, place: str) -> None:
    def apply(annotations: dict[str, str]) -> str:
        words = ("apply", "--dry-run=server", "-f", "-")
        answer = namespace.ask(*words, stdin=json.dumps(workload(kind, annotations)))
        assert answer.code == 0
        return answer.errors

    warning = apply(ANNOTATIONS)
    assert (
        f"annotations on the {kind} itself reach no pod: move them to {place}.metadata.annotations" in warning
    )
    assert apply({"example.com/owner": "vision"}) == ""


def test_those_of_a_cache_are_in_place(namespace: Namespace) -> None:
    made = workload("Deployment", {"podferry.io/nodes": "2"})
    made["metadata"]["labels"] = {"podferry.io/cache": "digits"}
    answer = namespace.ask("apply", "--dry-run=server", "-f", "-", stdin=json.dumps(made))
    assert (answer.code, answer.errors) == (0, "")
