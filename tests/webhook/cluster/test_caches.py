from collections.abc import AsyncIterator
from typing import Any

import pytest

from podferry.contract.errors import Unavailable
from podferry.webhook.cluster.caches import Caches, known_cache
from podferry.webhook.cluster.kube import Cluster, KubeClient
from podferry.webhook.pod.known_cache import KnownCache
from tests.support.memory_cluster import MemoryCluster

LABEL = "podferry.io/cache"


def service(namespace: str, name: str = "digits", readers: str = "", **changes: Any) -> dict[str, Any]:
    metadata = {
        "name": f"podferry-cache-{name}",
        "namespace": namespace,
        "labels": {"podferry.io/cache": name},
        "annotations": {"podferry.io/source": "s3://datasets/digits", "podferry.io/readers": readers},
    }
    return {"metadata": metadata | changes, "spec": {"clusterIP": changes.pop("address", "10.0.0.7")}}


@pytest.fixture
async def caches(memory_cluster: MemoryCluster) -> Caches:
    memory_cluster.services = [
        service("team-a"),
        service("team-b", "other", "team-a"),
        service("podferry", "shared", "team-* lab"),
        {"metadata": {"name": "x", "namespace": "team-a"}, "spec": {"clusterIP": "10.0.0.8"}},
    ]
    found = Caches(memory_cluster)
    await found.refresh()
    return found


async def test_a_namespace_sees_its_own_and_those_that_the_administrator_shares(caches: Caches) -> None:
    assert [one.name for one in caches.visible_in("team-a")] == ["digits", "shared"]
    assert [one.name for one in caches.visible_in("team-b")] == ["other", "shared"]
    assert [one.name for one in caches.visible_in("elsewhere")] == []
    assert [one.name for one in caches.visible_in("podferry")] == ["shared"]


async def test_a_cache_of_a_claim_serves_its_namespace_alone(memory_cluster: MemoryCluster) -> None:
    source = {"podferry.io/source": "pvc://datasets/digits", "podferry.io/readers": "team-a"}
    memory_cluster.services = [service("podferry", annotations=source)]
    caches = Caches(memory_cluster)
    await caches.refresh()
    assert [one.name for one in caches.visible_in("podferry")] == ["digits"]
    assert caches.visible_in("team-a") == ()


def volume(name: str, phase: str = "Bound") -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {LABEL: "shared"}}, "status": {"phase": phase}}


SPACES = ("team-a", "team-b", "team-c", "team-d", "lab")


async def test_a_namespace_with_the_bound_claim_shares(caches: Caches, memory_cluster: MemoryCluster) -> None:
    memory_cluster.volumes = [
        volume("podferry-cache.podferry.shared.team-a"),
        volume("podferry-cache.podferry.shared.team-b", "Released"),
        volume("podferry-cache.team-a.shared.lab"),
        volume("podferry-cache.podferry.shared.team-d"),
    ]
    memory_cluster.volumes[-1]["metadata"]["deletionTimestamp"] = "2026-11-28T12:00:00Z"
    await caches.refresh()
    claims = {space: caches.visible_in(space)[-1].claim for space in SPACES}
    assert claims == {**dict.fromkeys(SPACES, ""), "team-a": "podferry-cache-shared"}


async def test_without_the_right_to_list_volumes_pods_copy(
    caches: Caches, memory_cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def denied(_: str) -> AsyncIterator[dict[str, Any]]:
        raise Unavailable.of("no")
        yield {}

    monkeypatch.setattr(memory_cluster, "labelled_volumes", denied)
    await caches.refresh()
    assert [one.claim for one in caches.visible_in("team-a")] == ["", ""]


async def test_an_outage_keeps_what_is_known(caches: Caches, memory_cluster: MemoryCluster) -> None:
    memory_cluster.failure = Unavailable.of("the API server does not respond")
    await caches.refresh()
    assert [one.name for one in caches.visible_in("team-a")] == ["digits", "shared"]


async def test_a_service_of_wrong_types_hides_no_other(memory_cluster: MemoryCluster) -> None:
    wrong = service("podferry", "wrong", labels={"podferry.io/cache": "wrong", "other": 1})
    memory_cluster.services = [wrong, service("podferry", readers="team-a")]
    caches = Caches(memory_cluster)
    await caches.refresh()
    assert [one.name for one in caches.visible_in("team-a")] == ["digits"]


async def test_a_cache_that_is_gone_is_forgotten(caches: Caches, memory_cluster: MemoryCluster) -> None:
    assert len(caches.visible_in("team-a")) == 2
    memory_cluster.services = []
    await caches.refresh()
    assert caches.visible_in("team-a") == ()


async def test_the_client_lists_by_label(api: Any, memory_cluster: MemoryCluster, client: KubeClient) -> None:
    memory_cluster.services = [service("a"), {"metadata": {"name": "x", "namespace": "a"}}]
    cluster: Cluster = client
    assert [one async for one in cluster.labelled_services("podferry.io/cache")] == [service("a")]
    memory_cluster.volumes = [volume("a")]
    assert [one async for one in cluster.labelled_volumes("podferry.io/cache")] == memory_cluster.volumes


async def test_the_client_reads_page_by_page(
    api: Any, memory_cluster: MemoryCluster, client: KubeClient
) -> None:
    memory_cluster.services = [service(f"team-{index % 2}", f"n{index}") for index in range(120)]
    assert [one async for one in client.labelled_services(LABEL)] == memory_cluster.services
    mine = [one async for one in client.labelled_services(LABEL, "team-1")]
    assert mine == memory_cluster.services[1::2]


async def test_the_caches_of_tenants_are_bounded(
    memory_cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody who may create Services could fill the webhook's memory, or hide the caches of others."""
    monkeypatch.setattr("podferry.webhook.cluster.caches.MAX_OF_NAMESPACE", 2)
    monkeypatch.setattr("podferry.webhook.cluster.caches.MAX_OF_ALL", 3)
    shared = service("podferry", readers="*")
    many = [service("hostile", f"n{index}") for index in range(5)]
    memory_cluster.services = [*many, service("team"), service("late"), shared]
    caches = Caches(memory_cluster)
    await caches.refresh()
    assert [one.name for one in caches.visible_in("hostile")] == ["n0", "n1", "digits"]
    assert [one.namespace for one in caches.visible_in("team")] == ["team", "podferry"]
    assert [one.namespace for one in caches.visible_in("late")] == ["podferry"]


async def test_what_is_not_kept_hides_no_cache_of_another_namespace(
    memory_cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podferry.webhook.cluster.caches.MAX_OF_NAMESPACE", 2)
    monkeypatch.setattr("podferry.webhook.cluster.caches.MAX_OF_ALL", 3)
    no_caches = [service("hostile", f"x{index}", annotations={}) for index in range(9)]
    too_many = [service("hostile", f"n{index}") for index in range(9)]
    memory_cluster.services = [*no_caches, *too_many, service("team")]
    caches = Caches(memory_cluster)
    await caches.refresh()
    assert [one.name for one in caches.visible_in("hostile")] == ["n0", "n1"]
    assert [one.namespace for one in caches.visible_in("team")] == ["team"]


def test_an_address_of_version_6_is_bracketed() -> None:
    found = known_cache(service("a", address="fd00::7"))
    assert found == KnownCache("digits", "s3://datasets/digits", "http://[fd00::7]:8091", "a")


@pytest.mark.parametrize(
    "wrong",
    [
        service("a", address="None"),
        service("a", address=""),
        service("a", annotations={"podferry.io/source": "no location"}),
        service("a", annotations=None),
        service("a", labels={"podferry.io/cache": ""}),
        service("a", labels=["podferry.io/cache"]),
        service("a", labels={"podferry.io/cache": 7}),
        service("a", annotations="s3://datasets/digits"),
        service("a", annotations={"podferry.io/source": ["s3://datasets/digits"]}),
        service("a", annotations={"podferry.io/source": "s3://datasets/" + "x" * 5000}),
        service("a", address=7),
        {"metadata": None},
        {},
        "digits",
    ],
)
def test_what_is_no_cache(wrong: dict[str, Any]) -> None:
    assert known_cache(wrong) is None
