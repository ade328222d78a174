"""The step `paddle_job` on a real API server, with a definition of the tests' own.

No operator runs: `job_controllers` has the tests' own stand-ins for their controllers, and for the definition
of PaddleJobs. Pods, podferry's webhook, the service account and its Role are real.
"""

from __future__ import annotations

from podferry.components.cluster_job.job_kind import PADDLE_JOB
from tests.e2e.job_controllers import controlled
from tests.e2e.job_inputs import FAILS, SLEEPS, TRAINS, paddle_job, role, stored
from tests.e2e.job_steps import Steps
from tests.e2e.site import Site


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
