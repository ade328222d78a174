import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from podferry.contract.errors import Unavailable
from podferry.webhook.cluster.kube import MutatingWebhooks
from podferry.webhook.cluster.rule_registration import RuleRegistration
from podferry.webhook.policy.policy import InjectionRule, PodSelector, Policy
from tests.support.memory_cluster import MemoryCluster
from tests.support.patience import PATIENCE

NAME = "podferry"
BASE: dict[str, Any] = {"name": "pods.podferry.io", "clientConfig": {"caBundle": "QQ=="}}


@pytest.fixture
def ruled(policy: Policy) -> Policy:
    rule = InjectionRule("digits", PodSelector(namespaces=("team",)), {"dataset": "s3://datasets/digits"})
    return msgspec.structs.replace(policy, rules=(rule,))


@pytest.fixture
def registered(cluster: MemoryCluster) -> MemoryCluster:
    cluster.webhooks[NAME] = MutatingWebhooks("1", [BASE])
    return cluster


def names(cluster: MemoryCluster) -> list[str]:
    return [one["name"] for one in cluster.webhooks[NAME].webhooks]


async def test_entries_come_and_go_with_the_rules(
    registered: MemoryCluster, policy: Policy, ruled: Policy
) -> None:
    current = ruled
    registration = RuleRegistration(registered, NAME, lambda: current)
    assert [await registration.refresh() for _ in range(2)] == [True, False]
    assert names(registered) == ["pods.podferry.io", "digits.rules.podferry.io"]
    current = policy
    assert [await registration.refresh() for _ in range(2)] == [True, False]
    assert registered.webhooks[NAME].webhooks == [BASE]


async def test_replicas_agree(registered: MemoryCluster, ruled: Policy) -> None:
    replicas = [RuleRegistration(registered, NAME, lambda: ruled) for _ in range(3)]
    assert [await replica.refresh() for replica in replicas] == [True, False, False]


async def test_another_writer_in_between(registered: MemoryCluster, ruled: Policy) -> None:
    class Busy(MemoryCluster):
        """Somebody else writes just before this replica does, a number of times."""

        others = 2

        async def replace_mutating_webhooks(self, name: str, version: str, webhooks: Any) -> bool:
            self.others -= 1
            if self.others >= 0:
                found = self.webhooks[name]
                await super().replace_mutating_webhooks(name, found.version, found.webhooks)
            return await super().replace_mutating_webhooks(name, version, webhooks)

    busy = Busy("podferry-webhook", NAME)
    busy.webhooks = registered.webhooks
    registration = RuleRegistration(busy, NAME, lambda: ruled)
    assert await registration.refresh()
    assert names(busy) == ["pods.podferry.io", "digits.rules.podferry.io"]
    busy.others, busy.webhooks[NAME] = 99, MutatingWebhooks("1", [BASE])
    with pytest.raises(Unavailable, match="keeps changing"):
        await registration.refresh()


async def test_in_the_background(registered: MemoryCluster, policy: Policy, ruled: Policy) -> None:
    """A failure is tried again; a changed policy is registered, and what somebody else removed."""
    current = policy
    registered.failure = Unavailable.of("no answer")
    running = asyncio.create_task(RuleRegistration(registered, NAME, lambda: current).run(0.001))

    async def until(reached: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not reached():  # noqa: ASYNC110 - what runs in the background sets no event
                await asyncio.sleep(0.001)

    def is_registered() -> bool:
        return names(registered) == ["pods.podferry.io", "digits.rules.podferry.io"]

    await until(lambda: registered.calls >= 3)
    registered.failure = None
    current = ruled
    await until(is_registered)
    registered.webhooks[NAME] = MutatingWebhooks("7", [BASE])
    await until(is_registered)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
