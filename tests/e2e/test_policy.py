"""What an administrator's policy does to pods that nobody has annotated: rules, audit, opting out."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.cluster.process import run, wait_until
from tests.e2e import install
from tests.e2e.claims import claim, volume
from tests.e2e.install import OVERLAY
from tests.e2e.manifests import Object, container, job, pod, podferry_annotations
from tests.e2e.namespace import STORE_SECRET, Namespace
from tests.e2e.site import Site

FILES = {f"{number}.bin": bytes([number]) * 100_000 for number in range(3)}
LABELS = {"app": "digits"}
TRAIN = """
import os, pathlib
data, checkpoints = (pathlib.Path(os.environ[f"PODFERRY_{name}"]) for name in ("DATASET", "CHECKPOINTS"))
total = sum(len(file.read_bytes()) for file in data.rglob("*") if file.is_file())
(checkpoints / "step-1.tmp").write_bytes(b"%d" % total)
(checkpoints / "step-1.tmp").rename(checkpoints / "step-1.bin")
print("bytes:", total)
"""


@pytest.fixture
def ruled(site: Site) -> Iterator[Namespace]:
    """A namespace of the rule `training`, whose Secret also names the store's endpoint."""
    site.upload_dataset("declared", FILES)
    with site.namespace({"podferry.test/rules": "training"}) as namespace:
        endpoint = {"stringData": {"AWS_ENDPOINT_URL": site.bucket.endpoint}}
        namespace.kubectl("patch", "secret", STORE_SECRET, "-p", json.dumps(endpoint))
        yield namespace


def stamps(made: dict[str, Any]) -> dict[str, str]:
    found = made["metadata"].get("annotations") or {}
    return {name.removeprefix("podferry.io/"): text for name, text in found.items() if "podferry.io/" in name}


def test_a_rule_injects_pods_that_nobody_has_annotated(site: Site, ruled: Namespace) -> None:
    outcome = ruled.run(job("digits", container(script=TRAIN), labels=LABELS))
    assert outcome.phase == "Succeeded"
    found = stamps(outcome.pod.object)
    assert (found["status"], found["rule"], found["dataset"]) == ("injected", "training", "declared")
    assert "bytes: 300000" in outcome["trainer"].log
    (commit,) = site.bucket.commits(ruled.lineage("digits"), f"by-rule/{ruled.name}")
    assert commit.confidence == "sure"


def test_a_rule_leaves_others_alone(ruled: Namespace) -> None:
    """Pods without its label or owner, pods that opt out, and what cannot be injected."""
    one = container(command=["true"])
    plain, owned = pod("plain", one, labels=LABELS), job("other", one, labels={"app": "other"})
    out = job("out", one, labels=LABELS, annotations=podferry_annotations(inject="false"))
    unclear = job("unclear", one, {**one, "name": "logger"}, labels=LABELS)
    assert stamps(ruled.dry_run(plain)) == {}
    ruled.start(owned, out, unclear)
    assert stamps(ruled.pod(owned).object) == {}
    assert stamps(ruled.pod(out).object) == {"inject": "false"}
    skipped = ruled.pod(unclear).object
    assert len(skipped["spec"]["containers"]) == 2
    assert "initContainers" not in skipped["spec"]
    assert stamps(skipped)["status"] == "skipped"
    assert "unclear which container trains" in stamps(skipped)["reason"]


def test_a_rule_for_gpus(ruled: Namespace) -> None:
    """No node has any: the pods are not created."""
    assert stamps(ruled.dry_run(with_gpus(1))) == {}
    assert stamps(ruled.dry_run(with_gpus(2)))["rule"] == "gpus"


def with_gpus(count: int) -> Object:
    """A pod that requests GPUs."""
    resources = {"limits": {"nvidia.com/gpu": str(count)}}
    return pod("train", container(command=["true"], resources=resources))


def test_a_guardrail_of_a_namespace(ruled: Namespace) -> None:
    """A tenant writes under its own prefix, whatever the policy allows elsewhere."""
    theirs = ruled.training_annotations(checkpoints="by-rule/other-team")
    answer = ruled.create(pod("theirs", container(command=["true"]), annotations=theirs))
    assert answer.code == 1
    assert f"Use one of the allowed destinations: s3://e2e/by-rule/{ruled.name}/" in answer.errors


def test_an_endpoint_in_a_secret_is_checked_by_the_agent(ruled: Namespace) -> None:
    """Only the agent can read it."""
    keys = ["--from-literal=AWS_ACCESS_KEY_ID=k", "--from-literal=AWS_SECRET_ACCESS_KEY=s"]
    endpoint = "--from-literal=AWS_ENDPOINT_URL=http://169.254.169.254"
    ruled.kubectl("create", "secret", "generic", "metadata", *keys, endpoint)
    wanted = podferry_annotations(dataset="s3://e2e/datasets/declared", dataset_size="1Mi", secret="metadata")
    outcome = ruled.run(pod("digits", container(command=["true"]), annotations=wanted))
    assert "the Secret's key AWS_ENDPOINT_URL: a metadata service" in outcome["podferry-gate"].message


def test_a_claim_is_mounted_without_an_agent(site: Site, namespace: Namespace) -> None:
    """Read-only, in the directory of the claim that the annotation names."""
    name = f"share-{namespace.name}"
    claimed = [{"name": "claim", "persistentVolumeClaim": {"claimName": "datasets"}}]
    mounts = [{"name": "claim", "mountPath": "/claim"}]
    write = f"mkdir /claim/{name} && printf complete > /claim/{name}/a.txt"
    prepare = container(command=["sh", "-c", write], volumeMounts=mounts)
    remove = container(command=["rm", "-r", f"/claim/{name}"], volumeMounts=mounts)
    read = """
import os, pathlib
data = pathlib.Path(os.environ["PODFERRY_DATASET"])
print((data / "a.txt").read_text(), "PODFERRY_AGENT" in os.environ)
try:
    (data / "b.txt").write_text("x")
except OSError as error:
    print(error.strerror)
"""
    annotations = podferry_annotations(dataset=f"pvc://datasets/{name}", mode="share")
    try:
        namespace.start(volume(name), claim(name))
        assert namespace.run(pod("prepare", prepare, volumes=claimed)).phase == "Succeeded"
        outcome = namespace.run(pod("train", container(script=read), annotations=annotations))
        assert namespace.run(pod("remove", remove, volumes=claimed)).phase == "Succeeded"
    finally:
        site.cluster.kubectl("delete", "pv", name, "--wait=false", "--ignore-not-found")
    assert outcome["trainer"].log.splitlines() == ["complete False", "Read-only file system"]
    assert stamps(outcome.pod.object)["status"] == "shared"
    assert "initContainers" not in outcome.pod.object["spec"]


def test_an_image_volume_that_the_api_server_drops_is_refused(namespace: Namespace) -> None:
    annotations = podferry_annotations(dataset="image://localhost/data/digits:1", mode="image")
    answer = namespace.create(pod("train", container(command=["true"]), annotations=annotations))
    assert answer.code == 1
    assert "this cluster has no image volumes" in answer.errors


def test_the_policy_is_checked_against_the_cluster(ruled: Namespace) -> None:
    """`podferry policy check --live`: what the policy does to a Job that exists."""
    ruled.start(job("waits", container(command=["true"]), labels=LABELS, job_spec={"suspend": True}))
    words = ["policy", "check", str(OVERLAY / "policy.yaml"), "--live", "-n", ruled.name, "-o", "json"]
    words += ["--kubeconfig", str(ruled.cluster.kubeconfig)]
    done = run([*ruled.cluster.backend.inside, sys.executable, "-m", "podferry", *words])
    (found,) = json.loads(done)["pods"]
    assert (found["pod"], found["outcome"], found["rule"]) == ("Job waits", "injected", "training")


def test_the_switch(site: Site, ruled: Namespace) -> None:
    """With a disabled policy, pods that opt in start as they are, and nothing is sent by a rule."""
    asking = pod("asks", container(command=["true"]), annotations=own_prefix(ruled))

    def disabled() -> bool:
        # Every replica: each answer may be another's.
        found = {stamps(ruled.dry_run(asking))["status"] for _ in range(6)}
        return found == {"disabled"} and not registered(site)

    assert registered(site)
    with policy_of(site, enforcement="disabled"):
        wait_until("the policy to be disabled", disabled, 40, interval=0.5)
        assert "initContainers" not in ruled.dry_run(asking)["spec"]
        assert stamps(ruled.dry_run(with_gpus(2))) == {}
    wait_until("the rules to be registered again", lambda: registered(site), 120, interval=0.5)
    wait_until("pods to be injected again", lambda: install.injects(site.cluster), 120, interval=0.5)


def own_prefix(namespace: Namespace) -> dict[str, str]:
    """Annotations that the guardrail of these namespaces allows."""
    return namespace.training_annotations(checkpoints=f"by-rule/{namespace.name}/asks")


def registered(site: Site) -> list[str]:
    """The entries of rules."""
    found = site.cluster.get("mutatingwebhookconfiguration", "podferry")["webhooks"]
    return [one["name"] for one in found if one["name"].endswith(".rules.podferry.io")]


@contextlib.contextmanager
def policy_of(site: Site, **changes: Any) -> Iterator[None]:
    """The policy with these changes, in the block."""
    before = site.cluster.get("-n", install.NAMESPACE, "configmap", "podferry-policy")["data"]["policy.yaml"]
    try:
        apply_policy(site, yaml.safe_dump({**yaml.safe_load(before), **changes}))
        yield
    finally:
        apply_policy(site, before)


def apply_policy(site: Site, text: str) -> None:
    """Change the ConfigMap, which the replicas read every 5 s."""
    patch = json.dumps({"data": {"policy.yaml": text}})
    site.cluster.kubectl("-n", install.NAMESPACE, "patch", "configmap", "podferry-policy", "-p", patch)


def test_an_audited_pod_runs_as_it_is(site: Site) -> None:
    with site.namespace({"podferry.test/rules": "audited"}) as namespace:
        answer = namespace.start(pod("audited", container(command=["true"])))
        assert "podferry only audits this pod: it would be injected" in answer.errors
        made = namespace.get("pod", "audited")
        assert stamps(made) == {"status": "audited", "rule": "audited", "reason": "would be injected"}
        assert "initContainers" not in made["spec"]
        assert namespace.outcome(pod("audited", container(command=["true"]))).phase == "Succeeded"
