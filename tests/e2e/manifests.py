"""Pods and Jobs as plain JSON, as small as a test needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.cluster.layout import BASE_IMAGE

TRAINER = "trainer"
"""Name of the training container."""
IMAGE_OF_1000 = "localhost/trainer-1000:e2e"
"""An image whose own USER is 1000; the fixture `image_of_1000` builds it."""
UNPRIVILEGED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""A `securityContext` that restricted Pod Security allows, but for the user."""
PREFIX = "podferry.io/"

Object = dict[str, Any]


def container(
    name: str = TRAINER,
    script: str = "",
    *,
    command: Sequence[str] = (),
    image: str = BASE_IMAGE,
    **more: Any,
) -> Object:
    """A container that runs a Python text, or a command.

    Args:
        name: Its name.
        script: Python.
        command: Instead of a script.
        image: Needs Python, for a script.
        more: Members of the container: `resources`, `securityContext`, `env`, …
    """
    words = [*command] or ["python3", "-u", "-c", script]
    return {"name": name, "image": image, "imagePullPolicy": "IfNotPresent", "command": words, **more}


def pod(
    name: str,
    *containers: Object,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> Object:
    """A pod that is not restarted.

    Args:
        name: Its name.
        containers: At least one, see `container`.
        annotations: With their prefix; see `Namespace.store_annotations`.
        labels: Its labels.
        spec: Members of its spec: `securityContext`, `initContainers`, `volumes`, `restartPolicy`, …
    """
    metadata = {"name": name, "annotations": dict(annotations or {}), "labels": dict(labels or {})}
    body = {"restartPolicy": "Never", "automountServiceAccountToken": False, **spec}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**body, "containers": [*containers]},
    }


def job(
    name: str,
    *containers: Object,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    backoff: int = 0,
    job_spec: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Object:
    """A Job that makes such a pod.

    Args:
        name: Its name.
        containers: As for `pod`.
        annotations: Of its pod template.
        labels: Of its pod template.
        backoff: How often a failed pod is replaced.
        job_spec: More members of the Job's own spec, such as `podFailurePolicy`.
        spec: Members of the pod's spec.
    """
    template = pod(name, *containers, annotations=annotations, labels=labels, **spec)
    metadata = {key: template["metadata"][key] for key in ("annotations", "labels")}
    body = {"backoffLimit": backoff, **(job_spec or {})}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {**body, "template": {"metadata": metadata, "spec": template["spec"]}},
    }


def podferry_annotations(**values: str | int) -> dict[str, str]:
    """Annotations: `podferry_annotations(dataset="s3://…", checkpoint_size="8Mi")`."""
    return {PREFIX + name.replace("_", "-"): str(value) for name, value in values.items()}
