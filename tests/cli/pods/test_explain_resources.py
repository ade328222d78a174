from typing import Any

import msgspec
import pytest

from podferry.cli.pods.explain_resources import TOTAL, explain_resources
from podferry.contract.errors import InvalidSpec
from podferry.webhook.limits.namespace_limits import NamespaceLimits, limits_from
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.policy.policy import Policy

TEAM = Namespace("team")
POLICY = Policy(image="podferry")
QUOTA = {"kind": "ResourceQuota", "metadata": {"name": "compute"}, "spec": {"hard": {"limits.cpu": "1"}}}


def pod(**annotations: str) -> dict[str, Any]:
    given = {f"podferry.io/{name.replace('_', '-')}": text for name, text in annotations.items()}
    resources = {"limits": {"memory": "1Gi"}, "requests": {"cpu": "1"}}
    trainer = {"name": "train", "image": "pytorch", "resources": resources}
    return {"metadata": {"name": "digits", "annotations": given}, "spec": {"containers": [trainer]}}


WITH_CHECKPOINTS = pod(checkpoints="s3://c/x", checkpoint_size="100Mi")


def test_each_container_and_the_pod() -> None:
    explained = explain_resources(WITH_CHECKPOINTS, TEAM, POLICY, NamespaceLimits())
    cells = {row.name: row.cells for row in explained.rows}
    assert list(cells) == ["podferry", "podferry-gate", "train", TOTAL]
    assert cells["podferry"][:2] == ("0.1", "-")
    assert cells["train"][:3] == ("1", "-", "1.0 GiB -> 1.3 GiB")
    assert cells[TOTAL][0] == "1 -> 1.1"
    assert explained.problems == explained.quotas == ()


def test_quotas() -> None:
    explained = explain_resources(WITH_CHECKPOINTS, TEAM, POLICY, limits_from([QUOTA]))
    (problem,) = explained.problems
    assert "containers set no limits.cpu (podferry, podferry-gate, train)" in str(problem)


def test_a_pod_that_podferry_refuses_has_no_rows() -> None:
    explained = explain_resources(pod(datset="x"), TEAM, POLICY, NamespaceLimits())
    assert explained.rows == ()
    assert "unknown annotation" in str(explained.problems[0])


def test_a_pod_that_podferry_leaves_alone() -> None:
    (trainer, total) = explain_resources(pod(), TEAM, POLICY, NamespaceLimits()).rows
    assert trainer.before == trainer.after == total.before == total.after


def test_a_malformed_pod() -> None:
    with pytest.raises(InvalidSpec, match="malformed"):
        explain_resources({"spec": {"containers": [{}]}}, TEAM, POLICY, NamespaceLimits())


def test_json() -> None:
    explained = explain_resources(WITH_CHECKPOINTS, TEAM, POLICY, limits_from([QUOTA]))
    assert msgspec.json.decode(msgspec.json.encode(explained))["rows"][0]["name"] == "podferry"
