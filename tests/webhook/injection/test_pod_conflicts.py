from collections.abc import Callable
from typing import Any

import pytest

from podferry.contract.annotations import read_annotations
from podferry.webhook.admission.decide import decide
from podferry.webhook.injection.inject import InjectionOutcome, inject
from podferry.webhook.injection.pod_conflicts import exposure_warnings, lineage_warnings, pod_conflicts
from podferry.webhook.injection.resolve import Namespace
from podferry.webhook.policy.policy import Policy

Pod = dict[str, Any]
TEAM = Namespace("team")


def katib(*arguments: str, shared: bool = True) -> Pod:
    collector = {"name": "metrics-logger-and-collector", "args": ["-t", "trial", *arguments]}
    spec = {"shareProcessNamespace": shared, "containers": [{"name": "training-container"}, collector]}
    return {"metadata": {}, "spec": spec}


@pytest.mark.parametrize(
    ("pod", "conflicts"),
    [
        (katib(), 1),
        (katib("-w", "true"), 1),
        (katib("-w"), 1),
        (katib("-w", "false"), 0),
        (katib("-w=false"), 0),
        (katib(shared=False), 0),
    ],
)
def test_a_collector_that_waits_for_the_agent(policy: Policy, pod: Pod, conflicts: int) -> None:
    found = list(pod_conflicts(pod, policy))
    assert len(found) == conflicts
    assert all("waitAllProcesses: false" in one.remedy for one in found)


def test_a_collector_that_comes_after_the_first_call_is_refused(injected: Pod, policy: Policy) -> None:
    injected["spec"]["shareProcessNamespace"] = True
    assert inject(injected, TEAM, policy).outcome is InjectionOutcome.INJECTED
    injected["spec"]["containers"].append({"name": "metrics-logger-and-collector", "args": []})
    decision = inject(injected, TEAM, policy)
    assert decision.outcome is InjectionOutcome.DENIED
    assert "Katib" in decision.problems[0].what


def test_a_shared_process_namespace_is_named(policy: Policy) -> None:
    (warning,) = exposure_warnings(katib())
    assert "/proc" in warning
    assert list(exposure_warnings(katib(shared=False))) == []


@pytest.mark.parametrize(
    ("annotations", "spec", "reason"),
    [
        ({}, {"os": {"name": "windows"}}, "Windows"),
        ({}, {"nodeSelector": {"kubernetes.io/os": "windows"}}, "Windows"),
        ({"kubernetes.io/config.mirror": "0f"}, {}, "mirror"),
        ({}, {"os": {"name": "linux"}, "nodeSelector": {"kubernetes.io/os": "linux"}}, None),
    ],
)
def test_pods_that_are_left_alone_with_a_word(
    annotated_pod: Callable[..., Pod],
    policy: Policy,
    annotations: dict[str, str],
    spec: Pod,
    reason: str | None,
) -> None:
    pod = annotated_pod()
    pod["metadata"]["annotations"] |= annotations
    pod["spec"] |= spec
    decision = decide(pod, TEAM, policy)
    assert (decision.outcome is InjectionOutcome.UNTOUCHED) is (reason is not None)
    assert reason is None or (decision.patch == () and reason in decision.warnings[0])


@pytest.mark.parametrize(
    ("annotations", "metadata", "warned"),
    [
        ({"checkpoints": "s3://r"}, {"generateName": "sweep-"}, True),
        ({"checkpoints": "s3://r"}, {"name": "sweep-1"}, False),
        ({"checkpoints": "s3://r"}, {"generateName": "sweep-", "ownerReferences": [{"kind": "Job"}]}, False),
        ({"checkpoints": "s3://r", "lineage": "one"}, {"generateName": "sweep-"}, False),
        ({"dataset": "s3://d"}, {"generateName": "sweep-"}, False),
    ],
)
def test_bare_pods_of_one_generate_name_share_a_lineage(
    annotations: dict[str, str], metadata: Pod, warned: bool
) -> None:
    complete = {f"podferry.io/{key}": text for key, text in annotations.items()}
    spec = read_annotations(complete)
    assert spec is not None
    found = list(lineage_warnings({"metadata": {**metadata, "annotations": complete}}, spec))
    assert bool(found) is warned
    assert all("Set podferry.io/lineage to keep them apart" in one for one in found)
