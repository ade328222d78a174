"""The step `why` reads a failed run of KFP's shape through the real API server.

The pods are recorded ones (`tests/e2e/test_kfp.py`), which fail in different ways. `why` has the rights that
KFP gives to the service account `pipeline-runner`: it is called with a token of it.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from podferry.components.diagnosis.why.runner import look
from podferry.components.reports.document import Document
from podferry.components.reports.render import markdown
from podferry.trainer.pod_api import PodApi
from tests.e2e.job_steps import role_for_jobs
from tests.e2e.kfp_pods import FURNITURE, ROLE, recorded, runnable
from tests.e2e.manifests import Object
from tests.e2e.namespace import Namespace
from tests.e2e.site import Site

RUN = "0f1e2d3c-0000-4000-8000-00000000c0de"
NOBODY = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody"}}
FAILS = "import sys; print('error: the dataset has changed since it was frozen.'); sys.exit(1)"


def step(name: str, shape: str, namespace: Namespace, **annotations: str) -> Object:
    """A recorded pod of the run."""
    found = runnable(recorded(shape), "", namespace.store_annotations(**annotations) if annotations else {})
    found["metadata"]["name"] = name
    found["metadata"]["labels"]["pipeline/runid"] = RUN
    # Its Workflow does not exist: where the cluster knows the kind, the pod would be collected as garbage.
    del found["metadata"]["ownerReferences"]
    return found


def main_of(pod: Object) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in pod["spec"]["containers"] if one["name"] == "main")
    return found


def recorded_command(pod: Object) -> list[str]:
    """The launcher's arguments, after the trainer that `runnable` has put in its place."""
    command: list[str] = main_of(pod)["command"]
    return command[4:]


def refused(namespace: Namespace) -> Object:
    uri = namespace.bucket.uri("datasets/why")
    return step("refused", "executor-plain", namespace, dataset=uri, dataset_size="1Mi")


def failed(namespace: Namespace) -> Object:
    pod = step("failed", "executor-parallelfor", namespace)
    main_of(pod)["command"] = ["python3", "-c", FAILS, *recorded_command(pod)]
    return pod


def without_image(namespace: Namespace) -> Object:
    pod = step("no-image", "executor-retry", namespace)
    main_of(pod).update(image="localhost/absent:1", imagePullPolicy="Never")
    return pod


def unschedulable(namespace: Namespace) -> Object:
    pod = step("too-big", "executor-fstring", namespace)
    main_of(pod)["resources"] = {"requests": {"memory": "900Ti"}, "limits": {"memory": "900Ti"}}
    return pod


def without_volume(namespace: Namespace) -> Object:
    pod = step("no-volume", "executor-fstring-annotated", namespace)
    pod["spec"]["volumes"].append({"name": "data", "secret": {"secretName": "absent"}})
    main_of(pod)["volumeMounts"].append({"name": "data", "mountPath": "/data"})
    return pod


def good(namespace: Namespace) -> Object:
    pod = step("good", "executor-annotated-emptydir", namespace)
    main_of(pod)["command"] = ["true", *recorded_command(pod)]
    return pod


STATES = {"refused": "Failed", "failed": "Failed", "good": "Succeeded"}


@pytest.fixture(scope="module")
def namespace(site: Site) -> Iterator[Namespace]:
    site.upload_dataset("why", {"a.bin": b"a" * (3 << 20)})
    with site.namespace() as found:
        found.start(*FURNITURE, *ROLE, NOBODY)
        for make in (refused, failed, without_image, unschedulable, without_volume, good):
            found.start(make(found))
        for name, phase in STATES.items():
            found.until(f"{name} to be {phase}", partial(has_phase, found, name, phase), 90)
        found.until("the image to be missing", partial(waits_for_image, found), 90)
        found.until("a pod to be unschedulable", partial(is_unschedulable, found), 60)
        found.until("a volume to be missing", partial(waits_for_volume, found), 60)
        yield found


def waits_for_volume(namespace: Namespace) -> bool:
    return any(one["reason"] == "FailedMount" for one in namespace.events("no-volume"))


def has_phase(namespace: Namespace, name: str, phase: str) -> bool:
    return bool(namespace.get("pod", name)["status"]["phase"] == phase)


def waits_for_image(namespace: Namespace) -> bool:
    return "ErrImageNeverPull" in json.dumps(namespace.get("pod", "no-image")["status"])


def is_unschedulable(namespace: Namespace) -> bool:
    return "Unschedulable" in json.dumps(namespace.get("pod", "too-big")["status"])


def api_of(namespace: Namespace, account: str, folder: Path) -> PodApi:
    """The API server as a service account sees it in its pod."""
    config = json.loads(namespace.kubectl("config", "view", "--raw", "--flatten", "-o", "json"))
    server = config["clusters"][0]["cluster"]
    folder.mkdir(exist_ok=True)
    (folder / "token").write_text(namespace.kubectl("create", "token", account))
    (folder / "namespace").write_text(namespace.name)
    (folder / "ca.crt").write_bytes(base64.b64decode(server["certificate-authority-data"]))
    return PodApi(server["server"], folder)


@pytest.fixture(scope="module")
def page(namespace: Namespace, tmp_path_factory: pytest.TempPathFactory) -> Document:
    api = api_of(namespace, "pipeline-runner", tmp_path_factory.mktemp("account"))
    with namespace.cluster.network():
        if folder := os.environ.get("PODFERRY_RECORD_PODS"):
            for pod in api.pods(f"pipeline/runid={RUN}"):
                Path(folder, f"{pod['metadata']['name']}.json").write_text(json.dumps(pod, indent=1))
        return look(RUN, api)


ROWS = {
    "produce": ("1.0 MiB are free", "Set podferry.io/dataset-size to", "exit code 78: retrying cannot help"),
    "each (iteration 1)": ("the dataset has changed since it was frozen", "exit code 1"),
    "flaky": ("the image of main cannot be pulled: localhost/absent:1", "ErrImageNeverPull"),
    "cc": ("no node can take the pod", "memory"),
}


def test_each_failed_task_is_explained(page: Document) -> None:
    text = markdown(page)
    (table,) = page.tables
    for task, parts in ROWS.items():
        said = " ".join(" ".join(row) for row in table.rows if row[0] == task)
        assert [part for part in parts if part not in said] == [], text
    assert page.good is False
    (note,) = page.notes
    assert "the pod's service account may not list events" in note
    assert "good" not in page.verdict


def test_with_the_role_of_the_jobs_it_reads_events(
    namespace: Namespace, page: Document, tmp_path: Path
) -> None:
    namespace.start(*role_for_jobs(namespace.name))
    with namespace.cluster.network():
        found = look(RUN, api_of(namespace, "pipeline-runner", tmp_path / "account"))
    assert found.notes == ()
    said = {row[0]: row for row in found.tables[0].rows if row[1] == "a volume cannot be mounted"}
    assert said["use"][2:] == (
        'MountVolume.SetUp failed for volume "data" : secret "absent" not found',
        "Check the Secrets, ConfigMaps and claims that the pod names",
    )


def test_without_the_right_it_says_which_one(namespace: Namespace, tmp_path: Path) -> None:
    with namespace.cluster.network():
        found = look(RUN, api_of(namespace, "nobody", tmp_path / "nobody"))
    (note,) = found.notes
    assert "the pod's service account may not list pods" in note
    assert f"in the namespace {namespace.name}" in note
