"""The objects of a cache's Jobs, against golden manifests and Pod Security's restricted profile."""

import os
from pathlib import Path

import pytest
import yaml

from podferry.cache.manifests.cache_job import USES, CacheJob, job_manifests
from podferry.cache.manifests.cache_spec import CacheSpec
from podferry.cache.manifests.manifests import manifests

GOLDEN = Path(__file__).parent / "golden"
IMAGE = "podferry:0.1.0"
JOBS = {
    "job_warmup": CacheJob("warmup", "digits", "podferry", ("cache", "warmup", "digits"), IMAGE),
    "job_clear": CacheJob(
        "clear", "digits", "team", ("cache", "clear", "digits", "-n", "team"), IMAGE, "0 3 * * *"
    ),
    "job_sync": CacheJob(
        "sync",
        "digits",
        "podferry",
        ("cache", "sync", "digits", "https://example.org/$(X)/"),
        IMAGE,
        "@daily",
        4,
        "keys",
        "other-keys",
        "nightly",
    ),
    "job_rmr": CacheJob("rmr", "digits", "podferry", ("cache", "rmr", "digits", "a"), IMAGE, secret="keys"),
}


def workload(job):
    *_, last = job_manifests(job)
    return (last["spec"]["jobTemplate"] if last["kind"] == "CronJob" else last)["spec"]


@pytest.mark.parametrize("name", JOBS)
def test_the_manifests_are_the_golden_ones(name):
    text = yaml.safe_dump_all(job_manifests(JOBS[name]), sort_keys=False)
    path = GOLDEN / f"{name}.yaml"
    if os.environ.get("PODFERRY_GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("verb", USES)
def test_no_cache_has_objects_of_the_names_of_a_job(verb):
    caches = (CacheSpec(name, "lab", "s3://b/c", 1 << 20, IMAGE) for name in ("a", f"a-{verb}"))
    of_caches = {one["metadata"]["name"] for spec in caches for one in manifests(spec)}
    for name in ("", f"podferry-cache-a-{verb}"):
        *rights, _ = job_manifests(CacheJob(verb, "a", "lab", (), IMAGE, name=name))
        assert not of_caches & {one["metadata"]["name"] for one in rights}


def test_a_job_takes_no_account_that_exists():
    rights = job_manifests(CacheJob("warmup", "a", "lab", (), IMAGE, name="default"))[:-1]
    assert "default" not in {one["metadata"]["name"] for one in rights}


@pytest.mark.parametrize("name", JOBS)
def test_they_pass_restricted_pod_security_and_are_no_holders(name):
    template = workload(JOBS[name])["template"]
    assert "metadata" not in template  # the Service selects by label
    [container] = template["spec"]["containers"]
    context = container["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["allowPrivilegeEscalation"] is False
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert all({"emptyDir", "secret"} & set(volume) for volume in template["spec"]["volumes"])


def test_each_worker_has_its_share():
    args = workload(JOBS["job_sync"])["template"]["spec"]["containers"][0]["args"]
    assert args[-1] == "--shard=$(JOB_COMPLETION_INDEX)/4"
    assert "https://example.org/$$(X)/" in args  # Kubernetes makes it $(X)


def test_only_what_the_verb_needs_is_allowed():
    def verbs(name):
        _, role, *_ = job_manifests(JOBS[name])
        return {(f"{rule['resources'][0]}", verb) for rule in role["rules"] for verb in rule["verbs"]}

    assert verbs("job_sync") == verbs("job_rmr")
    assert ("pods/proxy", "create") in verbs("job_sync")
    assert verbs("job_clear") - verbs("job_warmup") == {("pods", "delete")}
    assert verbs("job_warmup") - verbs("job_rmr") == {("statefulsets", "patch")}
