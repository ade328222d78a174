from collections.abc import Callable
from typing import Any

import pytest

from podferry.contract.errors import InvalidSpec
from podferry.contract.spec import FerrySpec
from podferry.webhook.injection.security_context import (
    CAPABILITIES,
    ENFORCE,
    NONROOT_USER,
    RunAs,
    gate_context,
    mode_warnings,
    run_as_of,
    security_context,
)

Settings = dict[str, Any]


def pod_of(settings: Settings | None, own: Settings | None) -> tuple[Settings, Settings]:
    container = {"name": "train", "securityContext": own}
    return {"spec": {"securityContext": settings, "containers": [container]}}, container


@pytest.mark.parametrize(
    ("settings", "own", "expected"),
    [
        (None, None, RunAs(0)),
        ({"runAsUser": 1000, "runAsGroup": 100}, None, RunAs(1000, 100)),
        ({"runAsUser": 1000, "runAsGroup": 100}, {"runAsUser": 2000}, RunAs(2000, 100)),
        ({"runAsUser": 1000}, {"runAsUser": 0}, RunAs(0)),
        ({"runAsNonRoot": True}, {"runAsUser": 7}, RunAs(7)),
        ({"runAsNonRoot": True}, {"runAsNonRoot": False}, RunAs(0)),
    ],
)
def test_the_agent_runs_as_the_trainer(
    settings: Settings | None, own: Settings | None, expected: RunAs
) -> None:
    assert run_as_of(*pod_of(settings, own), {}) == expected


@pytest.mark.parametrize(
    ("settings", "labels", "text"),
    [
        (None, {ENFORCE: "restricted"}, "restricted Pod Security"),
        ({"runAsUser": 0}, {ENFORCE: "restricted"}, "runAsUser is 0"),
        ({"runAsNonRoot": True}, {ENFORCE: "baseline"}, "takes its user from the image"),
        ({"runAsNonRoot": True}, {}, "no runAsUser"),
    ],
)
def test_a_user_that_may_not_be_root_must_be_known(
    settings: Settings | None, labels: dict[str, str], text: str
) -> None:
    with pytest.raises(InvalidSpec, match=text):
        run_as_of(*pod_of(settings, None), labels)


def test_only_root_gets_capabilities_and_the_gate_none() -> None:
    assert security_context(RunAs(0))["capabilities"] == {"drop": ["ALL"], "add": list(CAPABILITIES)}
    user = security_context(RunAs(1000, 100))
    assert user["capabilities"] == {"drop": ["ALL"]}
    assert (user["runAsUser"], user["runAsGroup"], user["runAsNonRoot"]) == (1000, 100, True)
    for run_as in (RunAs(0), RunAs(1000)):
        gate = gate_context(run_as)
        assert gate["capabilities"] == {"drop": ["ALL"]}
        assert gate["runAsUser"] == (run_as.user or NONROOT_USER)


@pytest.mark.parametrize(
    ("settings", "mode", "warned"),
    [
        (None, "0440", True),
        (None, "0444", False),
        ({"fsGroup": 100}, "0440", False),
        ({"fsGroup": 100}, "0400", True),
        ({"runAsUser": 1000}, "0400", False),
    ],
)
def test_files_that_an_unknown_user_cannot_read_are_reported(
    spec: Callable[..., FerrySpec], settings: Settings | None, mode: str, warned: bool
) -> None:
    wanted = spec(dataset="s3://d/x", file_mode=mode)
    warnings = mode_warnings(*pod_of(settings, None), wanted)
    assert len(warnings) == warned
    assert all(f"podferry.io/file-mode {mode}" in warning for warning in warnings)
