"""Settings of a pod, of its author or of other webhooks, with which an injected pod could not work."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from podferry.contract.errors import Problem
from podferry.contract.spec import PREFIX, FerrySpec
from podferry.webhook.injection.network_sidecars import proxy_problems
from podferry.webhook.pod.pod_json import Json, annotations_of, containers_of, spec_of
from podferry.webhook.policy.policy import Policy

KATIB_COLLECTORS = ("metrics-logger-and-collector", "metrics-collector")
"""Containers that Katib injects. Source: Katib, `pkg/webhook/v1beta1/pod`."""


MIRROR = "kubernetes.io/config.mirror"
"""Annotation of what the kubelet reports of a static pod, which runs from a file as it is."""
OS_LABEL, WINDOWS = "kubernetes.io/os", "windows"


def reason_to_leave_alone(pod: Json) -> str | None:
    """Why a pod cannot be changed so that podferry works in it, whatever it asks for; else None."""
    spec = spec_of(pod)
    if MIRROR in annotations_of(pod):
        return "it is the mirror of a static pod, which runs unchanged"
    selector = spec.get("nodeSelector") or {}
    if WINDOWS in {(spec.get("os") or {}).get("name"), selector.get(OS_LABEL)}:
        return "it runs on Windows"
    return None


def pod_conflicts(pod: Json, policy: Policy) -> Iterator[Problem]:
    """Why an agent cannot work in a pod, whatever its annotations are."""
    yield from proxy_problems(pod, policy)
    yield from _waiting_collectors(pod)


def exposure_warnings(pod: Json) -> Iterator[str]:
    """Who else can reach the agent because of namespaces that it shares."""
    if spec_of(pod).get("shareProcessNamespace"):
        readers = "processes of the agent's user, and root"
        yield f"shareProcessNamespace: {readers}, can read the agent's Secrets in /proc"
    if spec_of(pod).get("hostNetwork"):
        yield "hostNetwork: programs on the node's network can reach the agent's API"


def lineage_warnings(pod: Json, spec: FerrySpec) -> Iterator[str]:
    """Whether other bare pods of the same manifest write the same lineage, whose names differ by chance."""
    metadata = pod.get("metadata") or {}
    prefix = metadata.get("generateName")
    writes = spec.checkpoints is not None and not spec.checkpoints.read_only
    if (
        writes
        and prefix
        and not metadata.get("ownerReferences")
        and f"{PREFIX}lineage" not in annotations_of(pod)
    ):
        shared = (
            f"all pods of generateName {prefix} share the lineage {spec.lineage}: of two at once, the later"
        )
        yield f"{shared} takes over, and the earlier uploads no more. Set {PREFIX}lineage to keep them apart"


def _waiting_collectors(pod: Json) -> Iterator[Problem]:
    """Collectors that wait for the first process of each container, the agent's too, before they report.

    The agent ends after all ordinary containers, and the collector is one.
    Source: Katib, `pkg/metricscollector/v1beta1/common/pns.go`.
    """
    if not spec_of(pod).get("shareProcessNamespace"):
        return
    for container in containers_of(pod):
        if container.get("name") in KATIB_COLLECTORS and not _waits_for_main_only(container):
            yield Problem(
                "Katib's metrics collector and podferry's agent would wait for each other, and the trial "
                "would never end",
                f"container {container['name']} waits for all processes of the pod",
                "Set waitAllProcesses: false for the collector in KatibConfig (runtime.metricsCollectors)",
            )


def _waits_for_main_only(container: Json) -> bool:
    """Whether it has Katib's flag `-w false`."""
    words = [part.lstrip("-") for one in container.get("args") or [] for part in str(one).split("=", 1)]
    return ("w", "false") in pairwise(words)
