"""Copies of injected pods: the original's checkpoints are not theirs. Debugging the original works."""

from __future__ import annotations

import contextlib
import copy
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from podferry.contract.exit_codes import EXIT_NEVER
from podferry.webhook.pod.pod_json import GATE
from tests.cluster.cluster import Cluster, documents
from tests.cluster.layout import BASE_IMAGE
from tests.cluster.process import run
from tests.e2e.install import OVERLAY
from tests.e2e.manifests import TRAINER, Object, container, pod
from tests.e2e.namespace import Namespace
from tests.e2e.site import Site
from tests.e2e.trainers import COMMON, release_trainer

SCRIPT = f"{COMMON}\nwrite(1, 1000)\nwhile not os.path.exists('/tmp/end'): time.sleep(0.1)\nwrite(2, 1000)\n"
COPY = ("--copy-to=copy", f"--container={TRAINER}", "--profile=general")
COMMAND = ("--", "true")
ADMISSION_POLICY = (
    ("validatingadmissionpolicybinding", "podferry-injected"),
    ("validatingadmissionpolicy", "podferry-injected"),
)
STAMPS = [f"podferry.io/{name}" for name in ("status", "spec", "policy-hash", "signature")]


@pytest.fixture(scope="module")
def namespace(site: Site) -> Iterator[Namespace]:
    with site.namespace() as made:
        yield made


@pytest.fixture(scope="module")
def original(namespace: Namespace) -> Iterator[str]:
    """A pod that trains, and has made its first checkpoint durable; at the end it makes another."""
    manifest = pod("digits", container(script=SCRIPT), annotations=namespace.training_annotations())
    namespace.start(manifest)
    namespace.until("the first commit", lambda: commits(namespace) or None, 90)
    yield "digits"
    release_trainer(namespace, "digits", "end")
    outcome = namespace.outcome(manifest)
    assert outcome.succeeded, outcome
    assert len(commits(namespace)) == 2, "the copies have not fenced the original"


def commits(namespace: Namespace) -> list[Any]:
    return namespace.bucket.commits(namespace.lineage("digits", "pod"))


def exported(namespace: Namespace, name: str) -> Object:
    """`kubectl get pod -o yaml`, without what makes it conflict with the kubelet's updates."""
    found: Object = yaml.safe_load(namespace.kubectl("get", "pod", name, "-o", "yaml"))
    for key in ("uid", "resourceVersion"):
        del found["metadata"][key]
    return found


@contextlib.contextmanager
def no_admission_policy(cluster: Cluster) -> Iterator[None]:
    """Without the last check: as in a cluster whose administrator has left it out."""
    for one in ADMISSION_POLICY:
        cluster.kubectl("delete", *one)
    try:
        yield
    finally:
        rendered = yaml.safe_load_all(cluster.kubectl("kustomize", str(OVERLAY)))
        ours = [one for one in rendered if one["kind"].startswith("ValidatingAdmissionPolicy")]
        cluster.kubectl("apply", "-f", "-", stdin=documents(ours))


def test_a_copy_without_annotations_is_refused(namespace: Namespace, original: str) -> None:
    answer = namespace.ask("debug", original, *COPY, *COMMAND)
    assert answer.code == 1
    assert "this pod has podferry's containers without its annotations" in answer.errors
    assert "--keep-init-containers=false" in answer.errors


@pytest.mark.parametrize("words", [("--keep-annotations",), ("--profile=legacy",)])
def test_a_copy_with_annotations_is_refused(
    namespace: Namespace, original: str, words: tuple[str, ...]
) -> None:
    answer = namespace.ask("debug", original, *COPY, *words, *COMMAND)
    assert answer.code == 1
    assert f"podferry.io/signature is not that of {namespace.name}/copy" in answer.errors
    assert "--keep-init-containers=false" in answer.errors


def test_the_agent_refuses_where_nothing_else_does(site: Site, namespace: Namespace, original: str) -> None:
    before = namespace.bucket.objects("checkpoints")

    def copied() -> bool:  # the API server takes a moment to drop the policy
        return namespace.ask("debug", original, *COPY, *COMMAND).code == 0

    with no_admission_policy(site.cluster):
        namespace.until("the copy to be admitted", copied, 30)
    outcome = namespace.outcome(pod("copy", container()))
    gate = outcome[GATE]
    assert gate.exit_code == EXIT_NEVER
    assert "this pod is a copy of one that podferry injected" in gate.message
    assert "(pod copy, made for digits)" in gate.message
    assert namespace.bucket.objects("checkpoints") == before
    namespace.delete(outcome.pod.object, "--now")


def test_a_copy_of_the_main_containers_runs(namespace: Namespace, original: str) -> None:
    """As the refusals advise."""
    namespace.kubectl("debug", original, *COPY, "--keep-init-containers=false", *COMMAND)
    outcome = namespace.outcome(pod("copy", container()))
    assert outcome.succeeded, outcome
    namespace.delete(outcome.pod.object, "--now")


def test_an_ephemeral_container_runs(namespace: Namespace, original: str) -> None:
    words = (f"--image={BASE_IMAGE}", "--image-pull-policy=IfNotPresent", f"--target={TRAINER}")
    listing = ("ls", "/proc/1/root/dev/shm/checkpoints")
    namespace.kubectl("debug", original, *words, "--profile=general", "--container=debugger", "--", *listing)

    def ended() -> dict[str, Any] | None:
        status = namespace.get("pod", original)["status"]
        [one] = status.get("ephemeralContainerStatuses") or [{}]
        return one.get("state", {}).get("terminated")

    assert namespace.until("the debugger to end", ended)["exitCode"] == 0
    assert "step-1.bin" in namespace.log(original, "debugger")


def renamed(exported: Object) -> Object:
    exported["metadata"]["name"] = "renamed"
    return exported


def test_what_kubectl_exports(namespace: Namespace, original: str) -> None:
    """Applied again while the pod lives, it changes nothing; under another name, it is refused."""
    text = exported(namespace, original)
    assert namespace.ask("apply", "-f", "-", stdin=yaml.safe_dump(text)).code == 0
    answer = namespace.ask("apply", "-f", "-", stdin=yaml.safe_dump(renamed(copy.deepcopy(text))))
    assert answer.code == 1
    assert "podferry's stamps are not for this pod: it is a copy of another one" in answer.errors
    assert "Create it from the manifest that it was made from" in answer.errors


def test_a_forged_stamp_is_refused(namespace: Namespace, original: str) -> None:
    """A tenant writes stamps and containers, to reach a bucket that the policy does not allow."""
    forged = renamed(exported(namespace, original))
    text = json.dumps(forged["spec"]).replace("s3://e2e/checkpoints", "s3://other/checkpoints")
    forged["spec"] = json.loads(text)
    forged["metadata"] = {
        "name": "forged",
        "annotations": {
            "podferry.io/checkpoints": "s3://other/checkpoints",
            "podferry.io/status": "injected",
            "podferry.io/spec": forged["metadata"]["annotations"]["podferry.io/spec"],
        },
    }
    answer = namespace.create(forged)
    assert answer.code == 1
    assert "are not from this cluster's webhook (podferry.io/signature: none)" in answer.errors


def test_a_pod_that_was_injected_offline_is_refused(namespace: Namespace) -> None:
    """`podferry inject` is for clusters without the webhook."""
    manifest = pod("offline", container(command=["true"]), annotations=namespace.training_annotations())
    words = (sys.executable, "-m", "podferry.cli.main", "inject", "-", "--namespace", namespace.name)
    injected = yaml.safe_load(run(words, stdin=yaml.safe_dump(manifest)))
    answer = namespace.create(injected)
    assert answer.code == 1
    assert "(podferry.io/signature: unsigned)" in answer.errors
    for name in STAMPS:
        assert name in answer.errors
