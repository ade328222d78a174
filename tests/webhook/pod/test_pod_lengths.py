from collections.abc import Callable
from typing import Any

from podferry.webhook.admission.decide import decide
from podferry.webhook.injection.inject import InjectionOutcome
from podferry.webhook.injection.resolve import Namespace
from podferry.webhook.pod.json_patch import apply
from podferry.webhook.pod.pod_lengths import MAX_ANNOTATION_BYTES
from podferry.webhook.policy.policy import Policy

Pod = dict[str, Any]
TEAM = Namespace("team")
MAX_ARGUMENT_BYTES = 128 * 1024
SETTINGS = {"dataset": "s3://datasets/digits", "dataset_size": "1Gi"}


def longest_argument(pod: Pod) -> int:
    """Bytes of the longest argument or variable of podferry's containers."""
    ours = [one for one in pod["spec"]["initContainers"] if one["name"].startswith("podferry")]
    arguments = [word for one in ours for word in one["args"]]
    variables = [f"{each['name']}={each.get('value', '')}" for one in ours for each in one["env"]]
    return max(len(word.encode()) for word in (*arguments, *variables)) + 1


def annotation_bytes(pod: Pod) -> int:
    return sum(
        len(name.encode()) + len(text.encode()) for name, text in pod["metadata"]["annotations"].items()
    )


def test_a_long_value_is_refused_by_a_gate_that_can_start(
    annotated_pod: Callable[..., Pod], controlled: Callable[[Pod], Pod], policy: Policy
) -> None:
    """An argument or variable above 128 KiB ends with "argument list too long", before any message."""
    for settings in ({**SETTINGS, "include": "x" * 200_000}, {"dataset": "x" * 200_000}):
        pod = controlled(annotated_pod(**settings))
        decision = decide(pod, TEAM, policy)
        assert decision.outcome is InjectionOutcome.REFUSED
        made = apply(pod, decision.patch)
        assert longest_argument(made) < MAX_ARGUMENT_BYTES
        assert annotation_bytes(made) <= MAX_ANNOTATION_BYTES


def test_a_spec_of_the_longest_length_is_injected(annotated_pod: Callable[..., Pod], policy: Policy) -> None:
    pod = annotated_pod(**SETTINGS, include=",".join(f"part-{number:05}/*" for number in range(6000)))
    decision = decide(pod, TEAM, policy)
    assert decision.outcome is InjectionOutcome.INJECTED
    assert MAX_ARGUMENT_BYTES * 0.6 < longest_argument(apply(pod, decision.patch)) < MAX_ARGUMENT_BYTES


def test_annotations_without_room_for_the_stamps_are_denied(
    annotated_pod: Callable[..., Pod], controlled: Callable[[Pod], Pod], policy: Policy
) -> None:
    """The API server would refuse the patched pod, and blame its annotations."""
    pod = controlled(annotated_pod(**SETTINGS))
    pod["metadata"]["annotations"]["example.com/notes"] = "é" * ((MAX_ANNOTATION_BYTES - 600) // 2)
    assert annotation_bytes(pod) <= MAX_ANNOTATION_BYTES
    decision = decide(pod, TEAM, policy)
    assert decision.outcome is InjectionOutcome.DENIED
    (problem,) = decision.problems
    assert "do not fit" in problem.what
    pod["metadata"]["annotations"]["example.com/notes"] = "é" * ((MAX_ANNOTATION_BYTES - 3000) // 2)
    decision = decide(pod, TEAM, policy)
    assert decision.outcome is InjectionOutcome.INJECTED
    assert annotation_bytes(apply(pod, decision.patch)) <= MAX_ANNOTATION_BYTES
