from pathlib import Path

import pytest
import yaml

from podferry.cli.pods.policy_file import read_policy_file
from podferry.contract.errors import InvalidSpec

ROOT = Path(__file__).parents[3]
POLICY = "apiVersion: podferry.io/v1alpha1\nkind: InjectionPolicy\nimage: podferry:1\n"
POD = """
kind: Pod
metadata: {name: fit, annotations: {podferry.io/checkpoints: "s3://b/x", podferry.io/checkpoint-size: 1Mi}}
spec: {containers: [{name: main, image: pytorch}]}
"""


def test_the_policy_of_a_config_map() -> None:
    assert read_policy_file((ROOT / "deploy/base/policy.yaml").read_text(), "x").image == "podferry:0.1.0"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("kind: ConfigMap\ndata: {}\n", "does not have one policy"),
        (f"{POLICY}---\n{POLICY}", "several documents"),
        ("", "the policy is empty"),
        ("x: 2026-02-31", "not YAML"),
        ("a: [", "not YAML"),
        (POLICY.replace("image", "imag"), "unknown key"),
    ],
)
def test_what_is_no_policy(text: str, what: str) -> None:
    with pytest.raises(InvalidSpec, match=what):
        read_policy_file(text, "policy.yaml")


def test_a_list_with_the_config_map() -> None:
    config_map = {"kind": "ConfigMap", "data": {"policy.yaml": POLICY}}
    assert (
        read_policy_file(yaml.safe_dump({"kind": "List", "items": [config_map]}), "x").image == "podferry:1"
    )


@pytest.mark.parametrize("verb", ["explain", "inject"])
def test_verbs_take_the_manifests_that_a_policy_is_applied_with(podferry, tmp_path, verb):
    (tmp_path / "pod.yaml").write_text(POD)
    answer = podferry(verb, tmp_path / "pod.yaml", "--policy", ROOT / "deploy/base/policy.yaml")
    assert (answer.code, answer.err) == (0, "")


@pytest.mark.parametrize("words", [("explain", "--policy"), ("explain", "--limits"), ("inject", "--policy")])
def test_a_file_that_is_no_text_is_named(podferry, tmp_path, words):
    (tmp_path / "pod.yaml").write_text(POD)
    (tmp_path / "rules").write_bytes(b"\xff\xfe")
    verb, option = words
    answer = podferry(verb, tmp_path / "pod.yaml", option, tmp_path / "rules")
    assert (answer.code, f"{tmp_path}/rules is not text" in answer.err) == (1, True)
