"""A rule on a whole namespace, with pods as meshes, notebooks, operators and schedulers make them.

The shapes are golden pods. What a program does in them is imitated: images and commands are the tests' own.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.layout import BASE_IMAGE
from tests.e2e.manifests import Object
from tests.e2e.namespace import Namespace
from tests.e2e.site import Site

GOLDEN = Path(__file__).parents[1] / "webhook" / "golden"
FILES = {f"{number}.bin": bytes([number]) * 100_000 for number in range(3)}
INJECTED = (
    "notebook",
    "spark-driver",
    "spark-executor",
    "rayjob-worker",
    "mesh-istio-native",
    "mesh-linkerd-native",
)
SKIPPED = ("airflow-task", "vault-agent", "katib-trial")
"""With several containers, none of which is known to train."""
READS = """
import os, pathlib
data = pathlib.Path(os.environ.get("PODFERRY_DATASET", "/nowhere"))
print("bytes:", sum(file.stat().st_size for file in data.rglob("*") if file.is_file()))
"""
WAITS = (
    "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit())\n"
    "while True: time.sleep(0.05)"
)
FOREIGN = (
    "command",
    "args",
    "lifecycle",
    "ports",
    "resources",
    "startupProbe",
    "readinessProbe",
    "livenessProbe",
)


@pytest.fixture
def ruled(site: Site) -> Iterator[Namespace]:
    """A namespace with the rule `everything`."""
    site.upload_dataset("declared", FILES)
    with site.namespace({"podferry.test/rules": "everything"}) as namespace:
        endpoint = {"stringData": {"AWS_ENDPOINT_URL": site.bucket.endpoint}}
        namespace.kubectl("patch", "secret", "store", "-p", yaml.safe_dump(endpoint))
        yield namespace


def runnable(shape: str) -> Object:
    """The shape as a pod of its own, which this cluster can run."""
    pod = copy.deepcopy(yaml.safe_load((GOLDEN / shape / "pod.yaml").read_text()))
    metadata, spec = pod["metadata"], pod["spec"]
    annotations = metadata.get("annotations") or {}
    kept = {name: text for name, text in annotations.items() if not name.startswith("podferry.io/")}
    pod["metadata"] = {"name": shape, "annotations": kept, "labels": metadata.get("labels") or {}}
    for name in ("serviceAccountName", "nodeSelector", "tolerations", "schedulerName", "hostname"):
        spec.pop(name, None)
    spec["volumes"] = [_present(volume) for volume in spec.get("volumes") or []]
    trainer, *others = spec["containers"]
    spec["containers"] = [_running(trainer, READS), *(_running(one, WAITS) for one in others)]
    spec["initContainers"] = [
        _running(one, WAITS if one.get("restartPolicy") else "") for one in spec.get("initContainers") or []
    ]
    return {**pod, "apiVersion": "v1", "kind": "Pod", "spec": {**spec, "restartPolicy": "Never"}}


def _present(volume: dict[str, Any]) -> dict[str, Any]:
    """The volume, without objects that this cluster does not have."""
    return volume if "emptyDir" in volume else {"name": volume["name"], "emptyDir": {}}


def _running(container: dict[str, Any], script: str) -> dict[str, Any]:
    kept = {name: value for name, value in container.items() if name not in FOREIGN}
    return {
        **kept,
        "image": BASE_IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-c", script],
    }


def test_every_shape(ruled: Namespace) -> None:
    shapes = {shape: runnable(shape) for shape in (*INJECTED, *SKIPPED)}
    ruled.start(*shapes.values())
    found = {shape: ruled.pod(one).object["metadata"].get("annotations", {}) for shape, one in shapes.items()}
    assert {shape: stamps.get("podferry.io/status") for shape, stamps in found.items()} == {
        **dict.fromkeys(INJECTED, "injected"),
        **dict.fromkeys(SKIPPED, "skipped"),
    }
    for shape in SKIPPED:
        assert found[shape]["podferry.io/reason"], shape
        ruled.until(f"{shape} to train", lambda name=shape: _log(ruled, shapes[name]) or None)
    for shape in INJECTED:
        outcome = ruled.outcome(shapes[shape])
        assert outcome.phase == "Succeeded", shape
        assert "bytes: 300000" in outcome[shapes[shape]["spec"]["containers"][0]["name"]].log, shape


def _log(namespace: Namespace, pod: Object) -> str:
    return namespace.log(pod["metadata"]["name"], pod["spec"]["containers"][0]["name"])
