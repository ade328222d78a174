"""The step `train_job` on a real API server, with the definitions of Kubeflow Trainer.

No operator runs: `job_controllers` has the tests' own stand-ins for their controllers, and for the definition
of PaddleJobs. Pods, podferry's webhook, the service account and its Role are real.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from podferry.components.cluster_job.job_kind import TRAIN_JOB
from tests.cluster.layout import BASE_IMAGE
from tests.e2e.job_controllers import RUNTIME, controlled, trainer_of, training_runtime
from tests.e2e.job_inputs import SLEEPS, TRAINS, paddle_job, role, stored, train_job
from tests.e2e.job_steps import Steps
from tests.e2e.namespace import Namespace
from tests.e2e.site import Site


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


def restored(namespace: Namespace, job: str) -> str:
    (pod,) = namespace.get("pods", "-l", f"jobset.sigs.k8s.io/jobset-name={job}")["items"]
    return namespace.log(pod["metadata"]["name"], "node")


def test_trainer_2_0_is_refused(site: Site, steps: Steps) -> None:
    with trainer_of(site.cluster, "2.0.0", training_runtime(BASE_IMAGE)):
        ended = steps.run("train_job", steps.pod("step", "run-1"), train_job(SLEEPS, dataset="s3://e2e/x"))
        assert ended.code == 1
        assert "cannot annotate the pods of a TrainJob" in ended.log
        assert "podSpecOverrides" in ended.log
        assert "Traceback" not in ended.log
        assert steps.jobs("trainjobs") == []


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
