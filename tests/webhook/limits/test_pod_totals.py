from decimal import Decimal
from typing import Any

import pytest

from podferry.webhook.limits.pod_totals import amounts_of, format_amount, pod_totals


def container(cpu: str, restart: str | None = None) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu}}, **({"restartPolicy": restart} if restart else {})}


@pytest.mark.parametrize(
    ("containers", "init_containers", "expected"),
    [
        (["1", "500m"], [], "1.5"),
        (["1"], [("3", None)], "3"),
        (["1"], [("250m", "Always")], "1.25"),
        # The second init container runs next to the sidecar before it, and not next to the one after it.
        (["1"], [("250m", "Always"), ("2", None), ("500m", "Always")], "2.25"),
        (["1"], [("2", None), ("250m", "Always")], "2"),
    ],
)
def test_init_containers_and_sidecars(
    containers: list[str], init_containers: list[tuple[str, str | None]], expected: str
) -> None:
    pod = {
        "spec": {
            "containers": [container(cpu) for cpu in containers],
            "initContainers": [container(*one) for one in init_containers],
        }
    }
    assert pod_totals(pod, "requests") == {"cpu": Decimal(expected)}
    assert pod_totals(pod, "limits") == {}


def test_resources_of_the_pod_replace_the_sum() -> None:
    gpu = {"resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "2"}}}
    pod = {"spec": {"containers": [gpu], "resources": {"limits": {"cpu": "8"}}, "overhead": {"cpu": "1"}}}
    assert pod_totals(pod, "limits") == {"nvidia.com/gpu": 1, "cpu": 8}
    assert pod_totals(pod, "requests") == {"cpu": 1}


def test_amounts_for_people() -> None:
    assert amounts_of(None, "limits") == amounts_of({"limits": None}, "limits") == {}
    assert format_amount("limits.memory", Decimal(3 << 29)) == "1.5 GiB"
    assert format_amount("cpu", Decimal("0.500")) == "0.5"
    assert format_amount("nvidia.com/gpu", Decimal(10)) == "10"
