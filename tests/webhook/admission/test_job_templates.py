from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from podferry.webhook.admission.job_templates import TemplateReview, review_templates
from podferry.webhook.pod.known_cache import KnownCache
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.pod.stamp import Signer
from podferry.webhook.policy.policy import Enforcement, Policy

TEAM = Namespace("team")
Make = Callable[..., dict[str, Any]]


def template(pod: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"annotations": pod["metadata"]["annotations"]}, "spec": pod["spec"]}


def job(pod: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "digits"},
        "spec": {"template": template(pod), **spec},
    }


def pytorch(**roles: dict[str, Any]) -> dict[str, Any]:
    replicas = {role: {"replicas": 1, "template": template(pod)} for role, pod in roles.items()}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "digits"},
        "spec": {"pytorchReplicaSpecs": replicas},
    }


def test_a_job_that_is_right(annotated_pod: Make, policy: Policy) -> None:
    assert review_templates(job(annotated_pod()), TEAM, policy) == TemplateReview()


@pytest.mark.parametrize("workload", [{}, {"kind": "Job", "spec": {"template": {"spec": {}}}}, {"spec": []}])
def test_what_has_not_opted_in(workload: dict[str, Any], policy: Policy) -> None:
    assert review_templates(workload, TEAM, policy) == TemplateReview()
    assert review_templates({"apiVersion": "batch/v1", **workload}, TEAM, policy) == TemplateReview()


def test_all_problems(annotated_pod: Make, policy: Policy) -> None:
    pod = annotated_pod(datset="x", keep_local="y")
    assert [problem.what for problem in review_templates(job(pod), TEAM, policy).problems] == [
        "podferry.io/datset: unknown annotation",
        "podferry.io/keep-local: not an integer of 0 or more",
        "podferry.io/keep-local is set without podferry.io/checkpoints",
    ]


def test_what_the_job_gives_its_pods_is_known(annotated_pod: Make, policy: Policy) -> None:
    pod = annotated_pod(checkpoints="s3://c/$(job)/$(rank)", checkpoint_size="1Mi")
    assert review_templates(job(pod, completionMode="Indexed"), TEAM, policy) == TemplateReview()
    (problem,) = review_templates(job(pod), TEAM, policy).problems
    assert problem.measured == "'s3://c/$(job)/$(rank)': $(rank)"


def test_errors_name_the_template(annotated_pod: Make, policy: Policy) -> None:
    wrong, right = annotated_pod(datset="x"), annotated_pod()
    found = review_templates(pytorch(Master=right, Worker=wrong), TEAM, policy).problems
    assert [one.what for one in found] == [
        "spec.pytorchReplicaSpecs.Worker: podferry.io/datset: unknown annotation"
    ]
    jobs = [{"name": "node", "template": {"spec": {"template": template(wrong)}}}]
    jobset = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "spec": {"replicatedJobs": jobs}}
    (problem,) = review_templates(jobset, TEAM, policy).problems
    assert problem.what == "spec.replicatedJobs[node]: podferry.io/datset: unknown annotation"


def test_a_part_of_a_template_is_judged_by_itself(annotated_pod: Make, policy: Policy) -> None:
    """A TrainJob may add a size to a dataset that its runtime names; a misspelled key is wrong anywhere."""
    annotations = {
        "podferry.io/dataset-size": "1Gi",
        "podferry.io/lineage": "$(job)-$(rank)",
        "podferry.io/checkpoint": "s3://c",
    }
    override = {"targetJobs": [{"name": "node"}], "metadata": {"annotations": annotations}}
    trainjob = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "digits"},
        "spec": {"podTemplateOverrides": [override]},
    }
    (problem,) = review_templates(trainjob, TEAM, policy).problems
    assert problem.what == "spec.podTemplateOverrides[0]: podferry.io/checkpoint: unknown annotation"
    assert problem.remedy.startswith("Did you mean 'checkpoints'?")
    for enforcement in (Enforcement.AUDIT, Enforcement.DISABLED):
        lenient = msgspec.structs.replace(policy, enforcement=enforcement)
        assert review_templates(trainjob, TEAM, lenient).problems == ()
        assert review_templates(job(annotated_pod(datset="x")), TEAM, lenient).problems == ()


def test_a_part_of_a_template_may_name_a_cache(policy: Policy) -> None:
    override = {"metadata": {"annotations": {"podferry.io/dataset": "digits"}}}
    trainjob = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "digits"},
        "spec": {"podTemplateOverrides": [override]},
    }
    cache = KnownCache("digits", "s3://datasets/digits", "http://10.0.0.7:8091", "podferry")
    assert review_templates(trainjob, TEAM, policy).problems
    assert review_templates(trainjob, Namespace("team", caches=(cache,)), policy) == TemplateReview()


CHECKPOINTS = {"checkpoints": "s3://c/team", "checkpoint_size": "1Mi"}


def test_a_lineage_that_no_annotated_pod_writes(annotated_pod: Make, policy: Policy) -> None:
    pod, plain = annotated_pod(**CHECKPOINTS), annotated_pod(inject="false")
    assert review_templates(pytorch(Master=pod, Worker=pod), TEAM, policy).warnings == ()
    (warning,) = review_templates(pytorch(Master=plain, Worker=pod), TEAM, policy).warnings
    assert "spec.pytorchReplicaSpecs.Worker: none of these pods is rank 0" in warning


def test_pods_without_a_rank(annotated_pod: Make, policy: Policy) -> None:
    pod = annotated_pod(**CHECKPOINTS)
    (warning,) = review_templates(job(pod, parallelism=2), TEAM, policy).warnings
    assert warning.startswith("spec.template: 2 pods without a rank share lineage team.job.digits")
    indexed = job(pod, parallelism=2, completions=2, completionMode="Indexed")
    assert review_templates(indexed, TEAM, policy).warnings == ()


def test_warnings_of_pods_that_name_a_cache(annotated_pod: Make, policy: Policy) -> None:
    pod = annotated_pod(**CHECKPOINTS, dataset="cached", dataset_size="1Gi")
    cache = KnownCache("cached", "s3://datasets/digits", "http://10.0.0.7:8091", "podferry")
    found = review_templates(job(pod, parallelism=2), Namespace("team", caches=(cache,)), policy)
    (warning,) = found.warnings
    assert "share lineage team.job.digits" in warning


def test_another_number_of_pods_than_the_world(annotated_pod: Make, policy: Policy) -> None:
    pod = annotated_pod(**CHECKPOINTS, world="4")
    made = job(pod, parallelism=2, completions=3, completionMode="Indexed")
    (warning,) = review_templates(made, TEAM, policy).warnings
    assert warning.startswith("spec.template: podferry.io/world is 4, but there are 3 pods")


def test_a_rayjob_without_a_lineage_of_its_own(annotated_pod: Make, policy: Policy) -> None:
    def ray(**settings: str) -> dict[str, Any]:
        head = {"template": template(annotated_pod(**CHECKPOINTS, **settings))}
        spec = {"rayClusterSpec": {"headGroupSpec": head}}
        return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "digits"}, "spec": spec}

    (warning,) = review_templates(ray(), TEAM, policy).warnings
    assert "set podferry.io/lineage" in warning
    assert review_templates(ray(lineage="digits"), TEAM, policy) == TemplateReview()


def test_outputs_of_several_pods_in_one_location(annotated_pod: Make, policy: Policy) -> None:
    indexed = {"completions": 2, "completionMode": "Indexed"}
    pod = annotated_pod(outputs="s3://logs/digits", output_size="1Mi")
    (warning,) = review_templates(job(pod, **indexed), TEAM, policy).warnings
    assert warning.startswith("spec.template: 2 pods upload to one location, podferry.io/outputs")
    pod = annotated_pod(outputs="s3://logs/$(rank)", output_size="1Mi")
    assert review_templates(job(pod, **indexed), TEAM, policy) == TemplateReview()


def test_a_template_copied_from_an_injected_pod(injected: dict[str, Any], policy: Policy) -> None:
    (problem,) = review_templates(job(injected), TEAM, policy, Signer((b"key",), 0)).problems
    assert problem.what == "podferry's containers or stamps in the pod are not from this cluster's webhook"
    assert problem.remedy.startswith("Create it from the manifest that it was made from")
