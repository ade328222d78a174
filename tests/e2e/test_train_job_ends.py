"""The step `train_job` when it, its job or the API server ends early: retries, cancels, deletes.

No operator runs: `job_controllers` has the tests' own stand-ins for their controllers, and for the definition
of PaddleJobs. Pods, podferry's webhook, the service account and its Role are real.
"""

from __future__ import annotations

import pytest

from podferry.components.cluster_job.job_kind import TRAIN_JOB
from podferry.components.cluster_job.step_pod import identity_of
from tests.cluster.process import patient
from tests.e2e.job_controllers import RUNTIME, controlled
from tests.e2e.job_inputs import FAILS, SLEEPS, WAITS, assert_gone, let_go, train_job
from tests.e2e.job_steps import Steps
from tests.e2e.outages import api_server_restarted
from tests.e2e.site import Site


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
