"""Renders a verb of `podferry cache` as a Job, with an account that may do what the verb needs, and no more.

The pods pass restricted Pod Security. Several workers are an Indexed Job: each has a share of the work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from podferry.cache.manifests.arguments import not_expanded
from podferry.contract.cache_api import CACHE_LABEL
from podferry.webhook.injection.security_context import NONROOT_USER, RunAs, gate_context

Json = dict[str, Any]
SECRET_DIR, TO_SECRET_DIR, TEMPORARY_DIR = "/podferry/secret", "/podferry/to-secret", "/podferry/tmp"
RETRIES = 3
"""Of each pod. The verbs themselves retry what may pass."""
KEPT_SECONDS = 24 * 3600
"""For which a Job that has ended is kept, with the log of its pods."""
RBAC = "rbac.authorization.k8s.io"
INDEX_VARIABLE = "$(JOB_COMPLETION_INDEX)"
"""Kubernetes replaces it in the arguments of an Indexed Job's pods."""
MEMORY = {"sync": "1Gi", "copy": "1Gi"}
MEMORY_OF_OTHERS = "256Mi"
RULES: Mapping[str, tuple[Json, ...]] = {
    "read": (
        {"apiGroups": [""], "resources": ["services", "pods"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["pods/proxy"], "verbs": ["get"]},
        {"apiGroups": ["apps"], "resources": ["statefulsets"], "verbs": ["get", "list"]},
    ),
    "refresh": ({"apiGroups": [""], "resources": ["pods/proxy"], "verbs": ["create"]},),
    "replace": ({"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]},),
}
USES: Mapping[str, tuple[str, ...]] = {
    "sync": ("read", "token", "refresh"),
    "copy": (),
    "warmup": ("read", "token", "scale", "refresh"),
    "clear": ("read", "token", "scale", "replace"),
    "rmr": ("read", "token", "refresh"),
}
"""What each verb does in the cluster, by the keys of `RULES`; `token` and `scale` name the cache's objects.
`copy` is a sync between places that are given."""


class CacheJob(msgspec.Struct, frozen=True):
    """A verb to run in a cluster.

    Attributes:
        verb: `sync`, `warmup`, `clear` or `rmr`; `copy` for a sync that does not need the cache.
        cache: Name of the cache.
        namespace: Where its holders run, and the Job.
        words: The command, after `podferry`.
        image: Of the pods.
        schedule: As in a CronJob; empty for a Job that runs once.
        workers: Pods that share a `sync`.
        secret, to_secret: Secrets with credentials, mounted as `--secret-dir` and `--to-secret-dir`.
        name: Of the objects; empty for one that follows from cache and verb.
    """

    verb: str
    cache: str
    namespace: str
    words: tuple[str, ...]
    image: str
    schedule: str = ""
    workers: int = 1
    secret: str | None = None
    to_secret: str | None = None
    name: str = ""

    @property
    def object_name(self) -> str:
        """The name of the Job."""
        return self.name or self.rights_name

    @property
    def rights_name(self) -> str:
        """The name of its account and role: no other cache or job has it, and no account of the namespace."""
        return f"podferry-named-job-{self.name}" if self.name else f"podferry-job-{self.cache}-{self.verb}"


def job_manifests(job: CacheJob) -> tuple[Json, ...]:
    """The objects, in the order in which they are applied."""
    spec = _job_spec(job)
    meta = _meta(job, job.object_name)
    run = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}
    if job.schedule:
        cron = {"schedule": job.schedule, "concurrencyPolicy": "Forbid", "jobTemplate": {"spec": spec}}
        run = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta, "spec": cron}
    return *_rights(job), run


def _meta(job: CacheJob, name: str) -> Json:
    """With the label by which `podferry cache delete` finds the objects; the pods are no holders."""
    labels = {"app.kubernetes.io/name": "podferry-cache-job", CACHE_LABEL: job.cache}
    return {"name": name, "namespace": job.namespace, "labels": labels}


def _rights(job: CacheJob) -> Iterator[Json]:
    meta = _meta(job, job.rights_name)
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}
    of_cache = f"podferry-cache-{job.cache}"
    named: Mapping[str, tuple[Json, ...]] = {
        "token": ({"apiGroups": [""], "resources": ["serviceaccounts/token"], "verbs": ["create"]},),
        "scale": ({"apiGroups": ["apps"], "resources": ["statefulsets"], "verbs": ["patch"]},),
    }
    rules = [rule for use in USES[job.verb] for rule in RULES.get(use, ())]
    rules += [{**rule, "resourceNames": [of_cache]} for use in USES[job.verb] for rule in named.get(use, ())]
    api = {"apiVersion": f"{RBAC}/v1"}
    yield {**api, "kind": "Role", "metadata": meta, "rules": rules}
    account = {"kind": "ServiceAccount", "name": job.rights_name, "namespace": job.namespace}
    role = {"apiGroup": RBAC, "kind": "Role", "name": job.rights_name}
    yield {**api, "kind": "RoleBinding", "metadata": meta, "roleRef": role, "subjects": [account]}


def _job_spec(job: CacheJob) -> Json:
    spec = {"ttlSecondsAfterFinished": KEPT_SECONDS, "template": {"spec": _pod_spec(job)}}
    if job.workers == 1:
        return {"backoffLimit": RETRIES, **spec}
    several = {"completions": job.workers, "parallelism": job.workers}
    return {"completionMode": "Indexed", **several, "backoffLimitPerIndex": RETRIES, **spec}


def _pod_spec(job: CacheJob) -> Json:
    volumes: list[Json] = [{"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}]
    mounts: list[Json] = [{"name": "tmp", "mountPath": TEMPORARY_DIR}]
    for name, secret, path in _secrets(job):
        volumes.append({"name": name, "secret": {"secretName": secret}})
        mounts.append({"name": name, "mountPath": path, "readOnly": True})
    memory = MEMORY.get(job.verb, MEMORY_OF_OTHERS)
    container = {
        "name": job.verb,
        "image": job.image,
        "command": ["podferry"],
        "args": list(_words(job)),
        "env": [{"name": name, "value": TEMPORARY_DIR} for name in ("HOME", "TMPDIR")],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": {"requests": {"cpu": "100m", "memory": memory}, "limits": {"memory": memory}},
        "securityContext": gate_context(RunAs(NONROOT_USER, NONROOT_USER)),
        "volumeMounts": mounts,
    }
    return {
        "serviceAccountName": job.rights_name,
        "restartPolicy": "Never",
        "enableServiceLinks": False,
        "securityContext": {"fsGroup": NONROOT_USER},
        "containers": [container],
        "volumes": volumes,
    }


def _secrets(job: CacheJob) -> Iterator[tuple[str, str, str]]:
    """Names of volumes and their Secrets, and where they are mounted."""
    if job.secret:
        yield "secret", job.secret, SECRET_DIR
    if job.to_secret:
        yield "to-secret", job.to_secret, TO_SECRET_DIR


def _words(job: CacheJob) -> Iterator[str]:
    yield from map(not_expanded, job.words)
    for option, _, path in _secrets(job):
        yield f"--{option}-dir={path}"
    if job.workers > 1:
        yield f"--shard={INDEX_VARIABLE}/{job.workers}"
