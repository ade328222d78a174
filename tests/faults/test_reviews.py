"""A short form of `make reviews`; see `faults.reviews` for what is checked."""

import asyncio
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from faults.random_pods import known_shapes, random_pod, spoiled
from faults.reviews import review_all
from podferry.webhook.pod.json_patch import Draft

COUNT = 400


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with capture_logs():
        yield


def test_random_reviews() -> None:
    outcomes, broken = asyncio.run(review_all(1, COUNT))
    assert broken == []
    assert outcomes.total() == COUNT
    assert {"denied", "refused", "injected", "untouched", "skipped", "audited", "disabled"} <= set(outcomes)


def test_seeds_repeat() -> None:
    shapes = known_shapes()
    pod = random_pod(7, shapes)
    assert pod == random_pod(7, shapes) != random_pod(8, shapes)
    assert spoiled(7, pod) == spoiled(7, pod) != pod


def test_a_change_to_the_rest_of_a_pod_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the webhook changes an image instead of adding its containers."""

    def careless(self: Draft, path: object, at: int, value: object) -> None:
        self.operations.append({"op": "replace", "path": "/spec/containers/0/image", "value": "changed"})

    monkeypatch.setattr(Draft, "insert", careless)
    _, broken = asyncio.run(review_all(1, 60))
    assert any("changed: /spec/containers/0/image" in flaw for _, flaw in broken)


def test_a_crash_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(pod: object, policy: object) -> bool:
        raise AttributeError("a defect")

    monkeypatch.setattr("podferry.webhook.admission.server.concerns", crash)
    _, broken = asyncio.run(review_all(1, 5))
    assert {flaw.partition(" ")[0] for _, flaw in broken} == {"500"}
    assert len({seed for seed, _ in broken}) == 5
