"""KFP's pods, recorded or in that shape, for a cluster without KFP."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path

from tests.cluster.layout import BASE_IMAGE
from tests.e2e.manifests import Object

FURNITURE = (
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "pipeline-runner"}},
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "mlpipeline-minio-artifact"},
        "stringData": {"accesskey": "a", "secretkey": "s"},
    },
)
"""Objects in every namespace of KFP."""
ROLE = [
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "pipeline-runner"},
        "rules": [{"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list", "watch"]}],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "pipeline-runner"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "pipeline-runner"},
        "subjects": [{"kind": "ServiceAccount", "name": "pipeline-runner"}],
    },
]
"""What KFP's role `pipeline-runner` allows with pods (its manifests, `pipeline-runner-role.yaml`)."""
RECORDED = Path(__file__).parents[1] / "data" / "kfp-pods"
IMAGE_USER = 65532
"""Of KFP's and Argo's own images, which say it themselves."""


def recorded(name: str) -> Object:
    found: Object = json.loads((RECORDED / f"{name}.json").read_text())
    return found


def runnable(
    pod: Object, script: str, annotations: Mapping[str, str] | None = None, image: str = BASE_IMAGE
) -> Object:
    """The pod for a cluster without KFP.

    Args:
        pod: In the shape of a recorded one.
        script: Python in place of the launcher; it gets the launcher's arguments.
        annotations: More of them.
        image: Of all containers; it needs Python.
    """
    pod = copy.deepcopy(pod)
    del pod["metadata"]["namespace"]
    pod["metadata"]["annotations"] |= dict(annotations or {})
    for owner in pod["metadata"]["ownerReferences"]:
        # No workflow owns it. Where Argo's CRDs are installed, the garbage collector would delete the pod.
        owner["apiVersion"] = "argoproj.io/not-installed"
    for container in (*pod["spec"]["initContainers"], *pod["spec"]["containers"]):
        container["image"] = image
        if container["name"] == "main":
            container["command"] = ["python3", "-u", "-c", script, *container["command"][1:]]
        else:
            container |= {"command": ["true"], "args": []}
            container["securityContext"].setdefault("runAsUser", IMAGE_USER)
    return pod
