"""The steps `train_job` and `paddle_job` on a real API server: with the definitions of Kubeflow Trainer.

No operator runs: `job_controllers` has the tests' own stand-ins for their controllers, and for the definition
of PaddleJobs. Pods, podferry's webhook, the service account and its Role are real.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podferry.components.cluster_job.job_kind import PADDLE_JOB, TRAIN_JOB
from podferry.components.cluster_job.step_pod import identity_of
from tests.cluster.layout import BASE_IMAGE
from tests.cluster.process import patient, wait_until
from tests.e2e.custom_resources import defined
from tests.e2e.job_controllers import (
    RUNTIME,
    controlled,
    paddle_job_definition,
    published,
    trainer_of,
    training_runtime,
)
from tests.e2e.job_steps import Steps
from tests.e2e.manifests import Object
from tests.e2e.namespace import STORE_SECRET, Namespace
from tests.e2e.outages import api_server_restarted
from tests.e2e.site import Site

TRAINS = """
import os, pathlib
files = sorted(path.name for path in pathlib.Path(os.environ["PODFERRY_DATASET"]).iterdir())
checkpoints = pathlib.Path(os.environ["PODFERRY_CHECKPOINTS"])
print("dataset", files, "restored", sorted(path.name for path in checkpoints.iterdir()))
(checkpoints / "step-7.tmp").write_bytes(b"weights" * 1000)
(checkpoints / "step-7.tmp").rename(checkpoints / "step-7.bin")
"""
FAILS = "print('starting'); print('no GPU found'); raise SystemExit(3)"
SLEEPS = "import time; time.sleep(3600)"
WAITS = """
import pathlib, time
while not pathlib.Path("/tmp/go").exists():
    time.sleep(0.2)
"""
"""Until the test says so."""


@pytest.fixture(scope="module")
def trainer(site: Site) -> Iterator[None]:
    with trainer_of(site.cluster, "2.2.0", training_runtime(BASE_IMAGE)):
        yield


@pytest.fixture(scope="module")
def paddle(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    definition = paddle_job_definition()
    file = tmp_path_factory.mktemp("crd") / "batch.paddlepaddle.org_paddlejobs.yaml"
    file.write_text(json.dumps(definition))
    with defined(site.cluster, [file]):
        wait_until(
            "the schema to be published", lambda: published(site.cluster, PADDLE_JOB), 60, interval=0.5
        )
        yield


@pytest.fixture
def steps(namespace: Namespace, tmp_path: Path) -> Steps:
    made = Steps(namespace, tmp_path)
    made.allow()
    return made


def train_job(script: str, **more: Any) -> Object:
    """Inputs of `train_job`."""
    trainer = {"image": BASE_IMAGE, "command": ["python3", "-u", "-c", script]}
    settings = more.pop("settings", {})
    inputs = {
        "runtime": RUNTIME,
        "runtime_kind": "ClusterTrainingRuntime",
        "trainer": trainer,
        "spec": {},
        "target": "node",
        "settings": settings,
    }
    return inputs | more


def stored(namespace: Namespace) -> Object:
    """Settings that open the bucket."""
    return {
        "secret": STORE_SECRET,
        "endpoint": namespace.bucket.endpoint,
        "dataset-size": "8Mi",
        "checkpoint-size": "1Mi",
    }


def restored(namespace: Namespace, job: str) -> str:
    (pod,) = namespace.get("pods", "-l", f"jobset.sigs.k8s.io/jobset-name={job}")["items"]
    return namespace.log(pod["metadata"]["name"], "node")


def role(replicas: int, script: str) -> Object:
    container = {
        "name": "paddle",
        "image": BASE_IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-u", "-c", script],
    }
    return {"replicas": replicas, "template": {"spec": {"containers": [container]}}}


def paddle_job(worker: Object, servers: Object, **more: Any) -> Object:
    """Inputs of `paddle_job`."""
    inputs = {"worker": worker, "servers": servers, "spec": {}, "settings": {}, "server_settings": {}}
    return inputs | more


def test_clusters_without_the_operators_are_named(steps: Steps) -> None:
    ended = steps.run("train_job", steps.pod("step", "run-1"), train_job(SLEEPS))
    assert (ended.code, "Install Kubeflow Trainer 2.1 or later" in ended.log) == (1, True), ended.log
    ended = steps.run("paddle_job", steps.pod("other", "run-1"), paddle_job(role(1, SLEEPS), {}))
    assert (ended.code, "Install PaddlePaddle's operator" in ended.log) == (1, True), ended.log


@pytest.mark.parametrize("version", ["2.1.0", "2.2.0"])
def test_a_train_job_is_staged_trained_and_durable_and_a_re_run_resumes(
    site: Site, steps: Steps, version: str
) -> None:
    namespace = steps.namespace
    uri = site.upload_dataset(f"jobs-{namespace.name}", {"a.bin": b"a" * 1000})
    destination = namespace.bucket.uri("checkpoints")
    inputs = train_job(TRAINS, dataset=uri, checkpoints=destination, settings=stored(namespace))
    with trainer_of(site.cluster, version, training_runtime(BASE_IMAGE)), controlled(namespace, TRAIN_JOB):
        first = steps.run("train_job", steps.pod("first", "run-1"), inputs)
        assert first.code == 0, first.log
        job, lineage, checkpoints = first.outputs
        assert checkpoints == destination
        assert lineage.startswith(f"{namespace.name}.kfp.two-step.produce.")
        (commit,) = namespace.bucket.commits(lineage)
        assert [file.name for file in commit.files] == ["step-7.bin"]
        assert "dataset ['a.bin'] restored []" in restored(namespace, job)
        second = steps.run("train_job", steps.pod("second", "run-2"), inputs)
        assert second.code == 0, second.log
        assert second.outputs[0] != job
        assert second.outputs[1:] == [lineage, checkpoints]
        assert "restored ['step-7.bin']" in restored(namespace, second.outputs[0])


def test_trainer_2_0_is_refused(site: Site, steps: Steps) -> None:
    with trainer_of(site.cluster, "2.0.0", training_runtime(BASE_IMAGE)):
        ended = steps.run("train_job", steps.pod("step", "run-1"), train_job(SLEEPS, dataset="s3://e2e/x"))
        assert ended.code == 1
        assert "cannot annotate the pods of a TrainJob" in ended.log
        assert "podSpecOverrides" in ended.log
        assert "Traceback" not in ended.log
        assert steps.jobs("trainjobs") == []


def test_a_failed_pods_exit_code_and_log_are_in_the_message(trainer: None, steps: Steps) -> None:
    with controlled(steps.namespace, TRAIN_JOB):
        ended = steps.run("train_job", steps.pod("step", "run-1"), train_job(FAILS))
    assert ended.code == 1
    message = ended.log[ended.log.index("has failed (FailedJobs") :]
    assert "container node: exit code 3 (Error): its log ends with\nstarting\nno GPU found" in message
    assert "Traceback" not in ended.log
    assert len(steps.jobs("trainjobs")) == 1  # to look at


def test_a_termination_message_is_in_the_message(trainer: None, steps: Steps) -> None:
    script = "open('/dev/termination-log', 'w').write('loss is NaN'); raise SystemExit(4)"
    with controlled(steps.namespace, TRAIN_JOB):
        ended = steps.run("train_job", steps.pod("step", "run-1"), train_job(script))
    assert ended.code == 1
    assert "container node: exit code 4 (Error): loss is NaN" in ended.log


def test_a_refusal_at_the_gate_is_in_the_message(site: Site, trainer: None, steps: Steps) -> None:
    namespace = steps.namespace
    uri = site.upload_dataset(f"jobs-{namespace.name}", {"a.bin": b"a" * 9_000_000})
    settings = stored(namespace) | {"dataset-size": "1Mi"}
    del settings["checkpoint-size"]
    inputs = train_job(SLEEPS, dataset=uri, settings=settings)
    with controlled(namespace, TRAIN_JOB):
        ended = steps.run("train_job", steps.pod("step", "run-1"), inputs)
    assert ended.code == 1
    message = ended.log[ended.log.index("has failed (FailedJobs") :]
    assert "container podferry-gate: exit code 78" in message
    assert "8.6 MiB" in message


def test_invalid_annotations_are_refused_before_there_is_a_job(trainer: None, steps: Steps) -> None:
    settings = {"datset": "s3://e2e/digits", "checkpoint-size": "lots"}
    ended = steps.run("train_job", steps.pod("step", "run-1"), train_job(SLEEPS, settings=settings))
    assert ended.code == 1
    assert "podferry.io/datset: unknown annotation" in ended.log
    assert "podferry.io/checkpoint-size: " in ended.log
    assert "Traceback" not in ended.log
    assert steps.jobs("trainjobs") == []


def test_unknown_fields_are_refused(trainer: None, steps: Steps) -> None:
    inputs = train_job(SLEEPS, spec={"suspnd": True})
    ended = steps.run("train_job", steps.pod("step", "run-1"), inputs)
    assert ended.code == 1
    assert 'unknown field "spec.suspnd"' in ended.log


def test_an_unknown_runtime_is_named_with_those_that_exist(site: Site, trainer: None, steps: Steps) -> None:
    namespace = steps.namespace
    lists = {
        "apiGroups": ["trainer.kubeflow.org"],
        "resources": ["clustertrainingruntimes"],
        "verbs": ["list"],
    }
    name = f"jobs-{namespace.name}"
    role = {"kind": "ClusterRole", "metadata": {"name": name}, "rules": [lists]}
    subject = {"kind": "ServiceAccount", "name": "pipeline-runner", "namespace": namespace.name}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    binding = {"kind": "ClusterRoleBinding", "metadata": {"name": name}, "roleRef": reference}
    version = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    namespace.start(version | role, version | binding | {"subjects": [subject]})
    try:
        ended = steps.run("train_job", steps.pod("step", "run-1"), train_job(SLEEPS, runtime="tortch"))
    finally:
        site.cluster.kubectl("delete", f"clusterrole/{name}", f"clusterrolebinding/{name}")
    assert ended.code == 1
    assert f"there is no ClusterTrainingRuntime tortch (there are: {RUNTIME})" in ended.log


def test_without_its_role_the_step_names_it(trainer: None, namespace: Namespace, tmp_path: Path) -> None:
    steps = Steps(namespace, tmp_path)
    ended = steps.run("train_job", steps.pod("step", "run-1"), train_job(SLEEPS))
    assert ended.code == 1
    assert "Apply deploy/kfp-jobs" in ended.log


def test_a_retried_step_attaches_and_only_one_job_runs(trainer: None, steps: Steps) -> None:
    with controlled(steps.namespace, TRAIN_JOB):
        with steps.started("train_job", steps.pod("first", "run-1"), train_job(WAITS)) as first:
            first.until_logged("1 active")
            first.kill()
        (before,) = steps.jobs("trainjobs")
        with steps.started("train_job", steps.pod("again", "run-1"), train_job(WAITS)) as again:
            again.until_logged("of an earlier attempt")
            # The first attempt's pod no longer owns it.
            steps.namespace.kubectl("delete", "pod", "first")
            let_go(steps.namespace)
            ended = again.ended()
        assert ended.code == 0, ended.log
        (after,) = steps.jobs("trainjobs")
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert [one["name"] for one in after["metadata"]["ownerReferences"]] == ["again"]
        third = steps.run("train_job", steps.pod("third", "run-1"), train_job(WAITS))
        assert third.code == 0  # it has succeeded already
        assert len(steps.jobs("trainjobs")) == 1


def let_go(namespace: Namespace) -> None:
    """Let the pods that run `WAITS` end."""

    def running() -> str | None:
        for one in namespace.get("pods", "-l", "jobset.sigs.k8s.io/jobset-name")["items"]:
            if one["status"]["phase"] == "Running":
                return str(one["metadata"]["name"])
        return None

    namespace.exec(namespace.until("a running pod", running), "node", "touch", "/tmp/go")


def test_a_job_that_failed_is_created_again_by_a_retry(trainer: None, steps: Steps) -> None:
    with controlled(steps.namespace, TRAIN_JOB):
        assert steps.run("train_job", steps.pod("first", "run-1"), train_job(FAILS)).code == 1
        (before,) = steps.jobs("trainjobs")
        again = steps.run("train_job", steps.pod("again", "run-1"), train_job("print('fine')"))
        assert again.code == 0, again.log
        (after,) = steps.jobs("trainjobs")
        assert after["metadata"]["uid"] != before["metadata"]["uid"]


def test_a_cancelled_step_deletes_its_job(trainer: None, steps: Steps) -> None:
    with controlled(steps.namespace, TRAIN_JOB):
        with steps.started("train_job", steps.pod("step", "run-1"), train_job(SLEEPS)) as step:
            step.until_logged("1 active")
            ended = step.cancel()
        assert ended.code == 143, ended.log
        assert "the step was cancelled" in ended.log
        assert_gone(steps)


def test_a_job_ends_with_its_steps_pod_though_the_step_could_do_nothing(trainer: None, steps: Steps) -> None:
    """Kubernetes' garbage collector deletes it."""
    with controlled(steps.namespace, TRAIN_JOB):
        with steps.started("train_job", steps.pod("step", "run-1"), train_job(SLEEPS)) as step:
            step.until_logged("1 active")
            step.kill()
        assert len(steps.jobs("trainjobs")) == 1
        steps.namespace.kubectl("delete", "pod", "step")
        assert_gone(steps)


def assert_gone(steps: Steps) -> None:
    """No job and no pod of it is left."""
    namespace = steps.namespace

    def gone() -> bool:
        pods = namespace.get("pods", "-l", "jobset.sigs.k8s.io/jobset-name")["items"]
        return not pods and not steps.jobs("trainjobs")

    namespace.until("the job and its pods to be gone", gone, 90)


@pytest.mark.timeout(patient(240))
def test_the_api_server_may_restart(site: Site, trainer: None, steps: Steps) -> None:
    with (
        controlled(steps.namespace, TRAIN_JOB),
        steps.started("train_job", steps.pod("step", "run-1"), train_job(WAITS)) as step,
    ):
        step.until_logged("1 active")
        with api_server_restarted(site.cluster):
            pass
        let_go(steps.namespace)
        ended = step.ended()
    assert ended.code == 0, ended.log
    assert "has succeeded" in ended.log


def test_a_job_that_somebody_deletes_ends_the_step(trainer: None, steps: Steps) -> None:
    with (
        controlled(steps.namespace, TRAIN_JOB),
        steps.started("train_job", steps.pod("step", "run-1"), train_job(SLEEPS)) as step,
    ):
        step.until_logged("1 active")
        steps.namespace.kubectl("delete", "trainjobs", "--all")
        ended = step.ended()
    assert ended.code == 1
    assert "was deleted while it ran" in ended.log
    assert steps.jobs("trainjobs") == []


def test_a_job_of_that_name_from_elsewhere_is_not_touched(trainer: None, steps: Steps) -> None:
    pod = steps.pod("step", "run-1")
    name = identity_of(steps.namespace.get("pod", "step"), steps.namespace.name).job_name
    theirs = {
        "apiVersion": TRAIN_JOB.api_version,
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {"runtimeRef": {"name": RUNTIME}},
    }
    steps.namespace.start(theirs)
    before = steps.jobs("trainjobs")
    ended = steps.run("train_job", pod, train_job(SLEEPS))
    assert ended.code == 1
    assert f"TrainJob {name} exists, and is not of this step" in ended.log
    assert steps.jobs("trainjobs") == before


def test_a_pod_that_cannot_start_is_explained(trainer: None, steps: Steps) -> None:
    inputs = train_job(SLEEPS, start_timeout=30)
    inputs["trainer"]["image"] = "localhost/does-not-exist:e2e"
    with controlled(steps.namespace, TRAIN_JOB):
        ended = steps.run("train_job", steps.pod("step", "run-1"), inputs)
        assert ended.code == 1
        message = ended.log[ended.log.index("do not start") :]
        assert "ImagePull" in message
        assert "localhost/does-not-exist:e2e" in message
        assert_gone(steps)


def test_parameter_servers_and_workers(site: Site, paddle: None, steps: Steps) -> None:
    namespace = steps.namespace
    uri = site.upload_dataset(f"jobs-{namespace.name}", {"a.bin": b"a", "b.bin": b"b"})
    destination = namespace.bucket.uri("checkpoints")
    inputs = paddle_job(
        role(2, TRAINS),
        role(1, "print('serving')"),
        dataset=uri,
        checkpoints=destination,
        settings=stored(namespace) | {"shard": "$(rank)/2"},
    )
    with controlled(namespace, PADDLE_JOB):
        ended = steps.run("paddle_job", steps.pod("step", "run-1"), inputs)
    assert ended.code == 0, ended.log
    job, lineage, _ = ended.outputs
    (commit,) = namespace.bucket.commits(lineage)
    assert (commit.rank, [file.name for file in commit.files]) == (0, ["step-7.bin"])
    seen = [namespace.log(f"{job}-worker-{index}", "paddle") for index in (0, 1)]
    assert {one.splitlines()[0] for one in seen} == {f"dataset ['{name}.bin'] restored []" for name in "ab"}
    server = namespace.get("pod", f"{job}-ps-0")
    assert "initContainers" not in server["spec"]


def test_a_failed_worker_of_a_paddle_job_is_explained_and_the_servers_end(paddle: None, steps: Steps) -> None:
    inputs = paddle_job(role(2, FAILS), role(1, SLEEPS))
    with controlled(steps.namespace, PADDLE_JOB):
        ended = steps.run("paddle_job", steps.pod("step", "run-1"), inputs)
    assert ended.code == 1
    message = ended.log[ended.log.index("has failed (phase Failed)") :]
    assert "container paddle: exit code 3 (Error): its log ends with\nstarting\nno GPU found" in message

    def gone() -> bool:
        return (
            not steps.jobs("paddlejobs") and not steps.namespace.get("pods", "-l", "paddle-res-name")["items"]
        )

    steps.namespace.until("the job and its servers to be gone", gone, 90)


def test_invalid_annotations_of_a_paddle_job_are_refused(paddle: None, steps: Steps) -> None:
    inputs = paddle_job(role(1, SLEEPS), {}, settings={"datset": "s3://e2e/digits", "keep-local": "-1"})
    ended = steps.run("paddle_job", steps.pod("step", "run-1"), inputs)
    assert ended.code == 1
    assert "podferry.io/datset: unknown annotation" in ended.log
    assert "podferry.io/keep-local: " in ended.log
    assert steps.jobs("paddlejobs") == []


def test_a_cancelled_paddle_job_is_deleted(paddle: None, steps: Steps) -> None:
    with controlled(steps.namespace, PADDLE_JOB):
        with steps.started("paddle_job", steps.pod("step", "run-1"), paddle_job(role(1, SLEEPS), {})) as step:
            step.until_logged("worker: 1 running")
            ended = step.cancel()
        assert ended.code == 143, ended.log
        steps.namespace.until("the job to be gone", lambda: not steps.jobs("paddlejobs"))
