"""Validates the rules and guardrails of a policy when it is read, as far as no pod is needed for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from podferry.contract.annotation_keys import KEYS, known_keys
from podferry.contract.declared_datasets import resolve_dataset
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.suggest import did_you_mean
from podferry.contract.variable_substitution import SOURCES, Variables, expand, refuse_braces

INPUT = re.compile(r"\$\(inputs\.([^()]*)\)")
ANY_VALUE = {name.replace("-", "_"): "0" for name in SOURCES}
Values = Mapping[str, Any]


def rule_conflicts(written: Any, rules: Sequence[Values], datasets: Mapping[str, str]) -> Iterator[Problem]:
    """What is wrong with rules beyond their single values.

    Args:
        written: The list as it is in the document.
        rules: The values in it that are valid.
        datasets: The policy's.
    """
    names = [rule.get("name") for rule in rules]
    for index, rule in enumerate(rules):
        path = f"rules[{index}]"
        if names[index] and names[index] in names[:index]:
            remedy = "Give each rule a name of its own"
            yield Problem(f"{path}.name: an earlier rule has this name", repr(names[index]), remedy)
        if _selects_all(written[index]):
            remedy = 'Write namespaces: ["*"] if that is intended'
            yield Problem(f"{path}.match: the rule would apply to every pod of the cluster", "", remedy)
        yield from _annotation_problems(f"{path}.annotations", rule.get("annotations") or {}, datasets)


def guardrail_conflicts(written: Any) -> Iterator[Problem]:
    """Guardrails that are not for particular namespaces; `written` is the list in the document."""
    for index, guardrail in enumerate(written if isinstance(written, list) else ()):
        if _selects_all(guardrail):
            what = f"guardrails[{index}].match: the guardrail names no namespaces"
            yield Problem(what, "", "Write what applies to all namespaces under allowed")


def _selects_all(written: Any) -> bool:
    return isinstance(written, dict) and written.get("match") == {}


def _annotation_problems(
    path: str, settings: Mapping[str, str], datasets: Mapping[str, str]
) -> Iterator[Problem]:
    known = known_keys(settings)
    for name, text in settings.items():
        if name == "inject":
            remedy = "Remove it: the rule's other annotations opt its pods in"
            yield Problem(f"{path}.inject: a rule cannot set it", repr(text), remedy)
        elif name not in known:
            remedy = did_you_mean(name, known, f"Known: {', '.join(KEYS)}")
            yield Problem(f"{path}.{name}: unknown annotation", repr(text), remedy)
        else:
            try:
                _parse(known[name].name, text, datasets)
            except InvalidSpec as error:
                yield from (
                    Problem(f"{path}.{name}: {one.what}", one.measured or repr(text), one.remedy)
                    for one in error.problems
                )


def _parse(key: str, text: str, datasets: Mapping[str, str]) -> None:
    """Raise `InvalidSpec` for an invalid value. Only a pod has values for variables; they must be known."""
    refuse_braces(text)
    inputs = dict.fromkeys(INPUT.findall(text), "")
    expanded = expand(text, Variables(**ANY_VALUE, inputs=inputs))  # type: ignore[arg-type]
    if "$(" in text:
        return
    value = KEYS[key].parse(expanded)
    if key == "dataset":
        resolve_dataset(value, datasets)
