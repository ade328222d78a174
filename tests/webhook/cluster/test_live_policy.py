import pytest
from structlog.testing import capture_logs

from podferry.contract.errors import Unavailable
from podferry.webhook.cluster.live_policy import LivePolicy
from tests.support.memory_cluster import MemoryCluster

NAME = "podferry-policy"


@pytest.fixture
def live(cluster: MemoryCluster) -> LivePolicy:
    cluster.add_config_map(NAME)
    return LivePolicy(cluster, NAME)


async def test_the_policy_as_it_is_now(cluster: MemoryCluster, live: LivePolicy) -> None:
    assert await live.read() is None
    for text in ("one", "two"):
        cluster.config_maps[NAME]["data"] = {"policy.yaml": text}
        assert await live.read() == text


async def test_what_was_read_last_counts_more_than_an_old_file(
    cluster: MemoryCluster, live: LivePolicy
) -> None:
    cluster.config_maps[NAME]["data"] = {"policy.yaml": "one"}
    await live.read()
    cluster.config_maps[NAME]["data"] = {}
    assert await live.read() == "one"
    cluster.failure = Unavailable.of("down")
    assert await live.read() == "one"


async def test_failures_are_logged_once(cluster: MemoryCluster, live: LivePolicy) -> None:
    cluster.config_maps[NAME]["data"] = {"policy.yaml": "one"}
    with capture_logs() as logs:
        for failure in (Unavailable.of("down"), Unavailable.of("down"), None, Unavailable.of("down")):
            cluster.failure = failure
            await live.read()
    assert [(one["log_level"], one["problems"]) for one in logs] == [("warning", ("down.",))] * 2
