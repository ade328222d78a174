"""What the step `train_job` says about pods that fail.

No operator runs: `job_controllers` has the tests' own stand-ins for their controllers, and for the definition
of PaddleJobs. Pods, podferry's webhook, the service account and its Role are real.
"""

from __future__ import annotations

from podferry.components.cluster_job.job_kind import TRAIN_JOB
from tests.e2e.job_controllers import controlled
from tests.e2e.job_inputs import FAILS, SLEEPS, assert_gone, stored, train_job
from tests.e2e.job_steps import Steps
from tests.e2e.site import Site


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
