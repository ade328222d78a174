import pytest

from podferry.contract.errors import InvalidSpec
from podferry.webhook.policy.policy_yaml import read_policy

HEAD = """apiVersion: podferry.io/v1alpha1
kind: InjectionPolicy
image: podferry:1
datasets: {digits: s3://datasets/digits}
"""


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidSpec) as caught:
        read_policy(HEAD + text)
    return [str(problem) for problem in caught.value.problems]


def test_everything_that_is_wrong_with_rules() -> None:
    text = """
rules:
  - name: Digits
    match: {namespaces: [Team_A], gpus: 0, label: {}}
    annotations: {dataset: digits}
  - name: one
    match: {}
    annotations:
      datset: digits
      dataset: digit
      checkpoints: s3://results/$(namspace)
      outputs: s3://results/${namespace}
      checkpoint-size: lots
      inject: "true"
  - name: one
    match: {namespaces: ["*"]}
    annotations: {}
  - enforcement: disabled
"""
    assert problems(text) == [
        "rules[0].name: not a valid name of a rule ('Digits'). Write up to 40 of a-z, 0-9 and '-'.",
        (
            "rules[0].match.namespaces: not a namespace ('Team_A'). "
            "Write a namespace's name; * stands for any characters and ? for one."
        ),
        "rules[0].match.gpus: not an integer above 0 (0). Write for example 1.",
        "rules[0].match.label: unknown key in the policy. Did you mean 'labels'?",
        "rules[2].annotations: not a mapping of annotations ({}). Write dataset: s3://datasets/digits.",
        "rules[3].name is missing from the policy. Add name.",
        "rules[3].match is missing from the policy. Add match.",
        "rules[3].annotations is missing from the policy. Add annotations.",
        "rules[3].enforcement: unknown value ('disabled'). Write one of inject, audit.",
        (
            "rules[1].match: the rule would apply to every pod of the cluster. "
            'Write namespaces: ["*"] if that is intended.'
        ),
        "rules[1].annotations.datset: unknown annotation ('digits'). Did you mean 'dataset'?",
        (
            "rules[1].annotations.dataset: neither a URI nor a declared dataset ('digit'). "
            "Did you mean 'digits'? Declared: digits."
        ),
        "rules[1].annotations.checkpoints: unknown variable ($(namspace)). Did you mean 'namespace'?",
        "rules[1].annotations.outputs: a variable in braces (${namespace}). Write $(namespace).",
        (
            "rules[1].annotations.checkpoint-size: not a quantity ('lots'). "
            "Write a number with a suffix such as Mi or Gi: 14Gi."
        ),
        (
            "rules[1].annotations.inject: a rule cannot set it ('true'). "
            "Remove it: the rule's other annotations opt its pods in."
        ),
        "rules[2].name: an earlier rule has this name ('one'). Give each rule a name of its own.",
    ]


def test_values_that_only_a_pod_completes_are_valid() -> None:
    text = """
rules:
  - name: sweeps
    match: {owners: [Workflow]}
    annotations:
      podferry.io/dataset: $(inputs.data)
      dataset-size: $(inputs.size)
      shard: $(rank)/$(world)
      checkpoints: s3://results/$(namespace)/$(task)
      keep-local: 2
"""
    (rule,) = read_policy(HEAD + text).rules
    assert rule.annotations["dataset"] == "$(inputs.data)"
    assert rule.annotations["keep-local"] == "2"


def test_guardrails() -> None:
    text = """
allowed: {destinations: ["s3://results/$(namespace)*", "s3://$(job)/*"]}
guardrails:
  - match: {}
    allowed: {destinations: ["s3://results/$(namespace)/"]}
  - allowed: {}
  - 7
"""
    assert problems(text) == [
        (
            "allowed.destinations: the glob also allows namespaces whose name begins alike "
            "('s3://results/$(namespace)*'). Write $(namespace)/."
        ),
        "guardrails[1].match is missing from the policy. Add match.",
        "guardrails[2]: not a mapping (7). Keys: match, allowed.",
        (
            "guardrails[0].match: the guardrail names no namespaces. "
            "Write what applies to all namespaces under allowed."
        ),
    ]
    assert problems('allowed: {sources: ["s3://results/*-$(namespace)/"]}') == [
        (
            "allowed.sources: the glob also allows namespaces whose name ends alike "
            "('s3://results/*-$(namespace)/'). Write /$(namespace)/."
        )
    ]
    (problem,) = problems('allowed: {sources: ["s3://$(job)/*"]}')
    assert problem.startswith("allowed.sources: the variable has no value in this pod ($(job)).")


@pytest.mark.parametrize("glob", ["s3*", "*.store.example", "results/team/", "store.example:9000"])
def test_a_glob_without_a_scheme(glob: str) -> None:
    """Its wildcard would match the path of any other host."""
    assert problems(f"allowed: {{endpoints: ['*', '{glob}']}}") == [
        (
            f"allowed.endpoints: the glob matches no address ('{glob}'). "
            "Write it with its scheme, such as s3://results/ or https://store.example."
        )
    ]


@pytest.mark.parametrize(
    "glob", ["*", "s3://*/$(namespace)/", "sftp://*@nas/$(namespace)/", "*://$(namespace)/"]
)
def test_a_glob_of_a_namespace(glob: str) -> None:
    assert read_policy(f"{HEAD}allowed: {{sources: ['{glob}']}}\n").allowed.sources == (glob,)
