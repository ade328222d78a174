"""Golden pods: the decision on each folder `golden/<case>` is compared with its `expected.yaml`.

A case has `pod.yaml`, or `recorded.yaml` with the name of a recorded KFP pod and annotations to add; and, if
needed, `policy.yaml` and `namespace.yaml` (labels). The expected result is the outcome with the patched pod
(for recorded ones the patch), or the problems as people read them. After an intended change, regenerate with
`PODFERRY_WRITE_GOLDEN=1 pytest tests/webhook/test_golden.py` and review the diff.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
import yaml

from podferry.webhook.admission.decide import decide
from podferry.webhook.injection.inject import Decision, InjectionOutcome
from podferry.webhook.pod.json_patch import apply
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.policy.policy import Policy
from podferry.webhook.policy.policy_yaml import read_policy
from tests.support.foreign_parts import changes_of_others

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(path.name for path in GOLDEN.iterdir())
INPUTS = {"pod.yaml", "recorded.yaml", "policy.yaml", "namespace.yaml"}


class Case:
    """One folder."""

    def __init__(self, name: str, recorded: Callable[[str], dict[str, Any]]) -> None:
        self.folder = GOLDEN / name
        self.pod = self._read("pod.yaml")
        self.from_kfp = not self.pod
        if self.from_kfp:
            document = self._read("recorded.yaml")
            self.pod = recorded(document["recorded"])
            self.pod["metadata"]["annotations"].update(document["annotations"])
        self.namespace = Namespace(
            self.pod["metadata"]["namespace"], self._read("namespace.yaml").get("labels", {})
        )
        policy = self.folder / "policy.yaml"
        self.policy = (
            read_policy(policy.read_text())
            if policy.exists()
            else Policy(image="registry.example.com/podferry:1")
        )

    def decide(self, pod: dict[str, Any] | None = None) -> Decision:
        return decide(self.pod if pod is None else pod, self.namespace, self.policy)

    def _read(self, name: str) -> Any:
        path = self.folder / name
        return yaml.safe_load(path.read_text()) if path.exists() else {}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, recorded: Callable[[str], dict[str, Any]]) -> Case:
    return Case(request.param, recorded)


def shown(case: Case, decision: Decision) -> str:
    document: dict[str, Any] = {"outcome": str(decision.outcome)}
    if decision.warnings:
        document["warnings"] = list(decision.warnings)
    if decision.problems:
        document["problems"] = [str(problem) for problem in decision.problems]
    if decision.patch:
        made = list(decision.patch) if case.from_kfp else apply(case.pod, decision.patch)
        document["patch" if case.from_kfp else "pod"] = made
    return yaml.dump(document, Dumper=Plain, sort_keys=False, allow_unicode=True, width=110)


class Plain(yaml.SafeDumper):
    """Without anchors for what occurs twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def test_golden(case: Case) -> None:
    expected = case.folder / "expected.yaml"
    found = shown(case, case.decide())
    if os.environ.get("PODFERRY_WRITE_GOLDEN"):
        expected.write_text(found)
    assert found == expected.read_text()


def test_a_second_pass_changes_nothing(case: Case) -> None:
    first = case.decide()
    second = case.decide(apply(case.pod, first.patch))
    assert second.outcome is first.outcome
    assert second.patch == ()


def test_the_patch_means_the_same_to_others(case: Case) -> None:
    patch = case.decide().patch
    assert jsonpatch.apply_patch(case.pod, patch) == apply(case.pod, patch)


def test_nothing_of_others_is_touched(case: Case) -> None:
    """Without podferry's additions, the pod is unchanged except for memory and grace."""
    assert changes_of_others(case.pod, case.decide().patch) == []


def test_every_file_in_the_folders_is_one_that_is_read() -> None:
    assert CASES
    for name in CASES:
        files = {path.name for path in (GOLDEN / name).iterdir()}
        assert files - INPUTS == {"expected.yaml"}
        assert len(files & {"pod.yaml", "recorded.yaml"}) == 1


def test_every_outcome_has_a_case(recorded: Callable[[str], dict[str, Any]]) -> None:
    assert {Case(name, recorded).decide().outcome for name in CASES} == set(InjectionOutcome)


def test_every_recorded_pod_has_a_case() -> None:
    names = {path.stem for path in (GOLDEN.parents[1] / "data" / "kfp-pods").glob("*.json")}
    assert {f"kfp-{name}" for name in names} <= set(CASES)
