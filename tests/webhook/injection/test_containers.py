from collections.abc import Callable
from typing import Any

import pytest

from podferry.contract.errors import Problem
from podferry.webhook.injection.container_resources import agent_limits
from podferry.webhook.injection.containers import gate, refusing_gate, sidecar
from podferry.webhook.injection.resolve import resolve_injection
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.pod.pod_json import escape_dollars
from podferry.webhook.policy.policy import Policy

Pod = dict[str, Any]


def test_the_agent_gets_the_spec_that_the_stamp_shows(injected: Pod) -> None:
    stamp = injected["metadata"]["annotations"]["podferry.io/spec"]
    env = {one["name"]: one.get("value") for one in injected["spec"]["initContainers"][0]["env"]}
    assert env["PODFERRY_SPEC"] == escape_dollars(stamp)


def test_the_agent_knows_for_which_pod_it_was_made(injected: Pod) -> None:
    env = {one["name"]: one for one in injected["spec"]["initContainers"][0]["env"]}
    assert env["PODFERRY_MADE_FOR"]["value"] == "digits"
    fields = {
        name: env[name]["valueFrom"]["fieldRef"]["fieldPath"] for name in ("PODFERRY_POD", "PODFERRY_STAMP")
    }
    assert fields == {
        "PODFERRY_POD": "metadata.name",
        "PODFERRY_STAMP": "metadata.annotations['podferry.io/signature']",
    }


@pytest.fixture
def containers(annotated_pod: Callable[..., Pod], policy: Policy) -> Callable[..., tuple[Pod, Pod]]:
    """The sidecar and the gate of a pod with these settings."""

    def build(**settings: str) -> tuple[Pod, Pod]:
        injection = resolve_injection(annotated_pod(**settings), Namespace("team"), policy)
        return sidecar(injection, policy, 55), gate(injection, policy)

    return build


def test_the_agents_flags_name_its_mounts(containers: Callable[..., tuple[Pod, Pod]]) -> None:
    agent, waiting = containers(
        dataset="s3://d/$$x",
        dataset_size="1Mi",
        checkpoints="s3://c/x",
        checkpoint_size="1Mi",
        outputs="s3://o/x",
        output_size="1Mi",
        secret="store",
    )
    flags = dict(one.removeprefix("--").split("=", 1) for one in agent["args"][2:])
    assert (flags.pop("port"), flags.pop("grace")) == ("8471", "55")
    assert {"dataset-dir", "dataset-secret-dir", "checkpoint-dir", "pins-dir", "output-dir"} <= set(flags)
    mounted = [one["mountPath"] for one in agent["volumeMounts"]]
    for flag, directory in flags.items():
        assert any(f"{directory}/".startswith(f"{path}/") for path in mounted), flag
    assert agent["restartPolicy"] == "Always"
    assert "restartPolicy" not in waiting
    mount = {"name": "podferry-checkpoints", "mountPath": "/podferry/restored", "subPath": "restored"}
    assert waiting["volumeMounts"] == [mount]


def test_a_pod_without_checkpoints_gets_no_flags_for_them(
    containers: Callable[..., tuple[Pod, Pod]],
) -> None:
    agent, _ = containers(dataset="s3://d/x", dataset_size="1Mi")
    names = [one.partition("=")[0] for one in agent["args"][2:]]
    assert sorted(names) == ["--control-dir", "--dataset-dir", "--grace", "--port"]


def test_a_refusing_gate_reports_all_problems_unexpanded(policy: Policy) -> None:
    problems = [Problem("one is wrong", "$(HOME)", "Fix it"), Problem("two is wrong", "", "")]
    made = refusing_gate(problems, policy, agent_limits({}, policy))
    (verb, refused) = made["args"]
    assert verb == "wait"
    assert refused.startswith("--refused=one is wrong ($$(HOME))")
    assert "two is wrong" in refused
    assert made["securityContext"]["runAsNonRoot"]
