"""The kinds of values under `match`, of a rule and of a guardrail.

What is written must narrow: an empty list or mapping, as templates render it, would match every pod. Labels
become part of a webhook's selectors, and the API server refuses a whole configuration for an invalid one.
"""

from __future__ import annotations

import re
from typing import Any

from podferry.contract.errors import InvalidSpec
from podferry.webhook.policy.policy_values import PolicyValue, list_of, matching

NAMESPACE_GLOB = re.compile(r"[a-z0-9*?-]+")
LABEL_NAME = re.compile(
    r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
)
LABEL_TEXT = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
KIND_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
INDIRECT_OWNERS = {
    "cronjob": "Job",
    "cronworkflow": "Workflow",
    "scheduledworkflow": "Workflow",
    "experiment": "Job",
    "trial": "Job",
    "notebook": "StatefulSet",
    "inferenceservice": "Deployment",
    "scheduledsparkapplication": "SparkApplication",
}
"""Kinds that no pod names, since they make pods through other objects, and what those name. Any other kind is
compared with the owners that a pod names, and with those that its labels show."""
LABEL_EXAMPLE = 'Write NAME: "VALUE", such as team: "vision"'


def _filled(value: Any) -> None:
    """Raise `InvalidSpec` for an empty list or mapping."""
    if value in ([], {}):
        raise InvalidSpec.of("it is empty, which would match everything", repr(value), "Fill or remove it")


def _namespaces(value: Any) -> tuple[str, ...]:
    _filled(value)
    globs: tuple[str, ...] = list_of("such as [team-a, team-b-*]").parse(value)
    for glob in globs:
        if not NAMESPACE_GLOB.fullmatch(glob):
            remedy = "Write a namespace's name; * stands for any characters and ? for one"
            raise InvalidSpec.of("not a namespace", repr(glob), remedy)
    return globs


def _labels(value: Any) -> dict[str, str]:
    _filled(value)
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise InvalidSpec.of("not a mapping of labels", repr(value), LABEL_EXAMPLE)
    for name, text in value.items():
        if not LABEL_NAME.fullmatch(str(name)) or not LABEL_TEXT.fullmatch(text):
            remedy = f"{LABEL_EXAMPLE}; a label is compared as a whole, without wildcards"
            raise InvalidSpec.of("not a label that an object can have", f"{name}: {text!r}", remedy)
    return {str(name): text for name, text in value.items()}


def _owners(value: Any) -> tuple[str, ...]:
    _filled(value)
    kinds: tuple[str, ...] = list_of("such as [Job, PyTorchJob]").parse(value)
    for kind in kinds:
        if direct := INDIRECT_OWNERS.get(kind.lower()):
            remedy = f"Write {direct}, or another kind that it makes, and select by labels"
            raise InvalidSpec.of("no pod names this kind as its owner", repr(kind), remedy)
        if not KIND_NAME.fullmatch(kind):
            raise InvalidSpec.of("not a kind", repr(kind), "Write for example Job; Pod is one without owner")
    return kinds


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidSpec.of("not an integer above 0", repr(value), "Write for example 1")
    return value


NAMESPACES = PolicyValue(_namespaces, {"type": "array", "minItems": 1, "items": matching(NAMESPACE_GLOB)})
OWNERS = PolicyValue(_owners, {"type": "array", "minItems": 1, "items": matching(KIND_NAME)})
LABELS = PolicyValue(
    _labels,
    {
        "type": "object",
        "minProperties": 1,
        "propertyNames": matching(LABEL_NAME),
        "additionalProperties": matching(LABEL_TEXT),
    },
)
COUNT = PolicyValue(_count, {"type": "integer", "minimum": 1})
