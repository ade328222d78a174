from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from podferry.contract.spec import FerrySpec
from podferry.webhook.injection.termination_grace import (
    MARGIN_SECONDS,
    TRAINER_SHUTDOWN_SECONDS,
    drain_seconds,
    grace_of,
)
from podferry.webhook.policy.policy import Bounds, Defaults, Policy

MIB_PER_SECOND = 1 << 20
CHECKPOINTS = {"checkpoints": "s3://c/x", "checkpoint_size": "100Mi"}
OUTPUTS = {"outputs": "s3://o/x", "output_size": "60Mi"}


@pytest.fixture
def slow(policy: Policy) -> Policy:
    """A policy that assumes uploads of 1 MiB/s, with a low minimum and a bound of ten minutes."""
    defaults = Defaults(grace=20, upload_rate=MIB_PER_SECOND)
    return msgspec.structs.replace(policy, defaults=defaults, bounds=Bounds(grace=600))


def pod_of(grace: int | None) -> dict[str, Any]:
    return {"spec": {"terminationGracePeriodSeconds": grace}}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"dataset": "s3://d/x"}, 30),
        (CHECKPOINTS, TRAINER_SHUTDOWN_SECONDS + 200),
        (OUTPUTS, TRAINER_SHUTDOWN_SECONDS + 60),
        ({**CHECKPOINTS, **OUTPUTS}, TRAINER_SHUTDOWN_SECONDS + 260),
        ({"checkpoints": "s3://c/x", "checkpoint_size": "1Mi"}, 30),
        ({**CHECKPOINTS, "grace": "40s"}, 40),
    ],
)
def test_the_last_uploads_fit_into_the_grace(
    spec: Callable[..., FerrySpec], slow: Policy, settings: dict[str, str], expected: int
) -> None:
    assert grace_of(pod_of(None), spec(**settings), slow) == (expected, ())


def test_the_pods_own_grace_is_never_shortened(spec: Callable[..., FerrySpec], slow: Policy) -> None:
    assert grace_of(pod_of(3600), spec(**CHECKPOINTS), slow) == (3600, ())
    assert grace_of(pod_of(3600), spec(**CHECKPOINTS, grace="40s"), slow) == (3600, ())


def test_the_policys_bound_is_kept_and_reported(spec: Callable[..., FerrySpec], slow: Policy) -> None:
    bounded = msgspec.structs.replace(slow, bounds=Bounds(grace=100))
    grace, (warning,) = grace_of(pod_of(None), spec(**CHECKPOINTS, **OUTPUTS), bounded)
    assert grace == 100
    assert "need 275 s, the policy allows 100 s" in warning
    assert "200.0 MiB of checkpoints at 1.0 MiB/s and 60.0 MiB of outputs" in warning
    grace, (warning,) = grace_of(pod_of(150), spec(**CHECKPOINTS, grace="5m"), bounded)
    assert grace == 150
    assert "podferry.io/grace requests 300 s" in warning


def test_the_agent_ends_before_the_kubelet_kills_it() -> None:
    assert drain_seconds(60) == 60 - MARGIN_SECONDS
    assert drain_seconds(1) == 1
