"""What a step says about its job, from tables of observations; and properties of any sequence of them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podferry.components.cluster_job.follower import (
    MAX_FAILURES,
    MENTION_AFTER,
    MISTAKE_PATIENCE,
    Follower,
    Observation,
)
from podferry.components.cluster_job.job_kind import TRAIN_JOB

COMPLETE = {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
FAILED = {
    "status": {
        "conditions": [
            {"type": "Failed", "status": "True", "reason": "JobsFailed", "message": "jobset failed"}
        ]
    }
}
SUSPENDED = {"status": {"conditions": [{"type": "Suspended", "status": "True"}]}}
RUNNING = {"status": {"jobsStatus": [{"name": "node", "active": 1}]}}


def seen(job: Any = None, pods: Any = (), warnings: Any = (), at: float = 0.0) -> Observation:
    return Observation(job or {}, pods, warnings, at)


def pod(name: str = "p-0", **status: Any) -> Any:
    return {"metadata": {"name": name}, "status": {"phase": "Pending", **status}}


def failed_pod(name: str, code: int, at: str, message: str = "") -> Any:
    ended = {"exitCode": code, "finishedAt": at, "reason": "Error", "message": message}
    return pod(name, phase="Failed", containerStatuses=[{"name": "node", "state": {"terminated": ended}}])


def waiting(reason: str, message: str = "") -> Any:
    return pod(
        containerStatuses=[{"name": "node", "state": {"waiting": {"reason": reason, "message": message}}}]
    )


def test_success() -> None:
    lines, verdict = Follower(TRAIN_JOB, "digits").observe(seen(COMPLETE))
    assert verdict is not None
    assert (lines, verdict.problems, verdict.given_up) == ([], (), False)


def test_a_failure_has_the_jobs_condition_and_the_reasons_of_its_pods_the_first_one_first() -> None:
    follower = Follower(TRAIN_JOB, "digits")
    pods = [
        failed_pod("p-1", 1, "2026-01-01T00:00:09Z"),
        failed_pod("p-0", 3, "2026-01-01T00:00:01Z", "no GPU"),
    ]
    lines, verdict = follower.observe(seen(RUNNING, pods), follower.new_failures(pods))
    assert verdict is None  # the job's controller may replace them
    assert "pod p-0, container node: exit code 3 (Error): no GPU" in lines
    assert follower.new_failures(pods) == []
    _, verdict = follower.observe(seen(FAILED))  # its controller has deleted the pods
    assert verdict is not None
    assert [str(one) for one in verdict.problems] == [
        "TrainJob digits has failed (JobsFailed: jobset failed).",
        "pod p-0, container node: exit code 3 (Error): no GPU.",
        "pod p-1, container node: exit code 1 (Error).",
    ]


def test_many_failures_are_counted() -> None:
    follower = Follower(TRAIN_JOB, "digits")
    pods = [failed_pod(f"p-{at}", 1, f"2026-01-01T00:00:{at:02}Z") for at in range(9)]
    _, verdict = follower.observe(seen(FAILED, pods), follower.new_failures(pods))
    assert verdict is not None
    assert len(verdict.problems) == MAX_FAILURES + 2
    assert verdict.problems[-1].what == "and 4 more, which the log lists"


def test_progress_is_said_when_it_changes() -> None:
    follower = Follower(TRAIN_JOB, "digits")
    assert follower.observe(seen(RUNNING))[0] == ["TrainJob digits: node: 1 active"]
    assert follower.observe(seen(RUNNING))[0] == []
    later = {"status": {"jobsStatus": [{"name": "node", "succeeded": 1}]}}
    assert follower.observe(seen(later))[0] == ["TrainJob digits: node: 1 succeeded"]


def test_a_wait_is_said_once_and_after_a_while() -> None:
    follower = Follower(TRAIN_JOB, "digits")
    assert follower.observe(seen(pods=[waiting("ErrImagePull", "no such image")]))[0] == []
    late = [waiting("ErrImagePull", "no such image")]
    assert follower.observe(seen(pods=late, at=MENTION_AFTER))[0] == [
        "pod p-0 waits: ErrImagePull: no such image"
    ]
    assert follower.observe(seen(pods=[waiting("ErrImagePull", "other text")], at=99))[0] == []


def test_a_job_whose_image_does_not_exist_is_given_up() -> None:
    follower = Follower(TRAIN_JOB, "digits")
    pods = [waiting("ImagePullBackOff", "Back-off pulling image x")]
    assert follower.observe(seen(pods=pods))[1] is None
    assert follower.observe(seen(pods=pods, at=MISTAKE_PATIENCE - 1))[1] is None
    verdict = follower.observe(seen(pods=pods, at=MISTAKE_PATIENCE))[1]
    assert verdict is not None
    assert verdict.given_up
    assert "ImagePullBackOff: Back-off pulling image x" in str(verdict.problems[0])


def test_reasons_that_alternate_count_together() -> None:
    """As a kubelet reports them, which pulls again after back-offs of up to five minutes."""
    follower = Follower(TRAIN_JOB, "digits")
    sequence = ["ErrImagePull", "ImagePullBackOff", "ContainerCreating", "ErrImagePull"]
    for at, reason in enumerate(sequence):
        assert follower.observe(seen(pods=[waiting(reason)], at=at * 180.0))[1] is None
    assert follower.observe(seen(pods=[waiting("ImagePullBackOff")], at=720.0))[1] is not None


def test_a_pod_that_has_run_waits_from_the_beginning() -> None:
    follower = Follower(TRAIN_JOB, "digits")
    assert follower.observe(seen(pods=[waiting("ErrImagePull")]))[1] is None
    assert follower.observe(seen(pods=[pod(phase="Running")], at=500.0))[1] is None
    assert follower.observe(seen(pods=[waiting("ErrImagePull")], at=700.0))[1] is None
    assert follower.observe(seen(pods=[waiting("ErrImagePull")], at=1300.0))[1] is not None


def test_a_job_without_a_running_pod_is_given_up_at_its_start_timeout_alone() -> None:
    patient, follower = Follower(TRAIN_JOB, "digits"), Follower(TRAIN_JOB, "digits", 100)
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1"}
    pods = [pod(conditions=[unschedulable])]
    for at in (0.0, 99.0):
        assert follower.observe(seen(pods=pods, at=at))[1] is None
    verdict = follower.observe(seen(pods=pods, at=100.0))[1]
    assert verdict is not None
    assert verdict.given_up
    assert verdict.problems[0].measured == "100 s; pod p-0 waits: Unschedulable: 0/1"
    assert [patient.observe(seen(pods=pods, at=at))[1] for at in (0.0, 1e6)] == [None, None]


def test_without_pods_the_warnings_say_why() -> None:
    follower = Follower(TRAIN_JOB, "digits", 10)
    warning = "Job digits-node-0: FailedCreate: exceeded quota"
    assert follower.observe(seen(warnings=[warning]))[0] == [warning]
    lines, verdict = follower.observe(seen(warnings=[warning], at=10.0))
    assert lines == []
    assert verdict is not None
    assert warning in verdict.problems[0].measured


def test_a_suspended_job_waits_without_a_limit() -> None:
    follower = Follower(TRAIN_JOB, "digits", 100)
    assert follower.observe(seen(SUSPENDED))[1] is None
    assert follower.observe(seen(SUSPENDED, at=1000.0))[1] is None
    assert follower.observe(seen(at=1001.0))[1] is None  # resumed: the time starts now
    assert follower.observe(seen(at=1100.0))[1] is None
    assert follower.observe(seen(at=1101.0))[1] is not None


def test_a_job_that_has_run_is_not_given_up_when_its_pods_are_replaced() -> None:
    follower = Follower(TRAIN_JOB, "digits", 100)
    assert follower.observe(seen(pods=[pod(phase="Running")]))[1] is None
    assert follower.observe(seen(pods=[pod()], at=1000.0))[1] is None


def test_pods_without_the_webhook_are_named_once() -> None:
    follower = Follower(TRAIN_JOB, "digits")
    one = pod()
    one["metadata"]["annotations"] = {"podferry.io/dataset": "s3://a/b"}
    (line,) = follower.observe(seen(pods=[one]))[0]
    assert "p-0 was created without podferry's webhook" in line
    assert follower.observe(seen(pods=[one]))[0] == []


JOBS = st.sampled_from([{}, RUNNING, SUSPENDED, FAILED, COMPLETE])
PODS = st.lists(
    st.sampled_from(
        [
            pod(),
            pod(phase="Running"),
            waiting("ImagePullBackOff"),
            failed_pod("p-0", 1, "2026-01-01T00:00:01Z"),
            failed_pod("p-1", 137, "2026-01-01T00:00:02Z", "killed"),
        ]
    ),
    max_size=3,
)


@given(st.lists(st.tuples(JOBS, PODS, st.floats(0, 10_000)), max_size=12))
def test_of_any_sequence_only_the_jobs_status_or_time_ends_it(sequence: list[Any]) -> None:
    follower, now, said = Follower(TRAIN_JOB, "digits"), 0.0, []
    for job, pods, step in sequence:
        now += step
        lines, verdict = follower.observe(seen(job, pods, at=now), follower.new_failures(pods))
        said += [line for line in lines if "exit code" in line]
        assert (verdict is not None and not verdict.given_up) == (job in (FAILED, COMPLETE))
        if verdict is not None:
            assert bool(verdict.problems) == (job != COMPLETE)
            assert not verdict.given_up or any("ImagePullBackOff" in str(one) for one in verdict.problems)
    assert len(set(said)) == len(said)  # each failure once
