from collections.abc import Callable
from typing import Any

from podferry.webhook.job_templates import pod_from_job, template_problems
from podferry.webhook.policy import Policy
from podferry.webhook.resolve import Namespace

TEAM = Namespace("team")


def job(pod: dict[str, Any], **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"annotations": pod["metadata"]["annotations"]}, "spec": pod["spec"]}
    return {"kind": "Job", "metadata": {"name": "digits"}, "spec": {"template": template, **spec}}


def test_a_job_that_is_right(annotated_pod: Callable[..., Any], policy: Policy) -> None:
    assert template_problems(job(annotated_pod()), TEAM, policy) == ()


def test_a_job_that_has_not_opted_in(policy: Policy) -> None:
    assert template_problems({"kind": "Job", "spec": {"template": {"spec": {}}}}, TEAM, policy) == ()


def test_all_problems(annotated_pod: Callable[..., Any], policy: Policy) -> None:
    pod = annotated_pod(datset="x", keep_local="y")
    assert [problem.what for problem in template_problems(job(pod), TEAM, policy)] == [
        "podferry.io/datset: unknown annotation",
        "podferry.io/keep-local: not an integer of 0 or more",
        "podferry.io/keep-local is set without podferry.io/checkpoints",
    ]


def test_what_the_job_gives_its_pods_is_known(annotated_pod: Callable[..., Any], policy: Policy) -> None:
    pod = annotated_pod(checkpoints="s3://c/$(job)/$(rank)", checkpoint_size="1Mi")
    assert template_problems(job(pod, completionMode="Indexed"), TEAM, policy) == ()
    (problem,) = template_problems(job(pod), TEAM, policy)
    assert problem.measured == "'s3://c/$(job)/$(rank)': $(rank)"


def test_an_owner_above_the_job_stays(annotated_pod: Callable[..., Any]) -> None:
    made = job(annotated_pod())
    assert pod_from_job(made)["metadata"]["ownerReferences"][0]["name"] == "digits"
    made["metadata"]["ownerReferences"] = [{"kind": "JobSet", "name": "set", "controller": True}]
    assert pod_from_job(made)["metadata"]["ownerReferences"][0]["name"] == "set"
