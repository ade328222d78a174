import pytest
from structlog.testing import capture_logs

from podferry.contract.errors import Unavailable
from podferry.webhook.cluster.last_policy import LastPolicy
from tests.support.memory_cluster import MemoryCluster

NAME = "podferry-last-policy"


@pytest.fixture
def last(cluster: MemoryCluster) -> LastPolicy:
    cluster.add_config_map(NAME)
    return LastPolicy(cluster, NAME)


async def test_what_is_kept_is_read(cluster: MemoryCluster, last: LastPolicy) -> None:
    assert await last.read() is None
    await last.keep("one")
    assert await LastPolicy(cluster, NAME).read() == "one"
    await last.keep("two")
    assert await last.read() == "two"


async def test_a_policy_is_written_once(cluster: MemoryCluster, last: LastPolicy) -> None:
    """A replica whose file is older does not undo what another one has kept."""
    await last.keep("old")
    other = LastPolicy(cluster, NAME)
    await other.keep("old")
    assert cluster.config_maps[NAME]["metadata"]["resourceVersion"] == "2"
    await other.keep("new")
    await last.keep("old")
    assert await last.read() == "new"


async def test_a_conflict_is_tried_again(cluster: MemoryCluster, last: LastPolicy) -> None:
    replace = cluster.replace_config_map

    async def conflict(_: object) -> bool:
        return False

    cluster.replace_config_map = conflict  # type: ignore[method-assign, assignment]
    await last.keep("one")
    cluster.replace_config_map = replace  # type: ignore[method-assign]
    assert await last.read() is None
    await last.keep("one")
    assert await last.read() == "one"


async def test_an_api_server_that_does_not_respond_stops_nothing(
    cluster: MemoryCluster, last: LastPolicy
) -> None:
    cluster.failure = Unavailable.of("no answer")
    with capture_logs() as logs:
        assert await last.read() is None
        for _ in range(3):
            await last.keep("one")
    assert [one["event"] for one in logs] == ["the last valid policy cannot be kept"]
    cluster.failure = None
    await last.keep("one")
    assert await last.read() == "one"


async def test_without_its_config_map(cluster: MemoryCluster) -> None:
    last = LastPolicy(cluster, "absent")
    assert await last.read() is None
    await last.keep("one")
