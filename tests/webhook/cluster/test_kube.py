"""`KubeClient` against an API server on loopback, and `MemoryCluster`: both pass the same suite."""

import base64
import shutil
from pathlib import Path
from typing import Any

import aiohttp
import certifi
import pytest

from podferry.contract.errors import AccessDenied, InvalidSpec, NotFound, Unavailable
from podferry.webhook.cluster.kube import USER_AGENT, Cluster, KubeClient, cluster_session, in_cluster_url
from tests.support.memory_cluster import MemoryCluster

SECRET, CONFIGURATION = "podferry-webhook", "podferry"
CONFIG_MAP = "podferry-last-policy"
KIND = "mutatingwebhookconfigurations"


@pytest.fixture(params=["memory", "server"])
def cluster(request: pytest.FixtureRequest, memory_cluster: MemoryCluster, client: KubeClient) -> Cluster:
    return memory_cluster if request.param == "memory" else client


async def test_a_secret_is_replaced_once(cluster: Cluster) -> None:
    mine, theirs = await cluster.secret(SECRET), await cluster.secret(SECRET)
    assert await cluster.replace_secret({**mine, "data": {"a": base64.b64encode(b"1").decode()}})
    assert not await cluster.replace_secret({**theirs, "data": {}})
    assert (await cluster.secret(SECRET))["data"] == {"a": "MQ=="}


async def test_a_config_map_is_replaced_once(cluster: Cluster) -> None:
    mine, theirs = await cluster.config_map(CONFIG_MAP), await cluster.config_map(CONFIG_MAP)
    assert await cluster.replace_config_map({**mine, "data": {"a": "1"}})
    assert not await cluster.replace_config_map({**theirs, "data": {}})
    assert (await cluster.config_map(CONFIG_MAP))["data"] == {"a": "1"}


async def test_trust(cluster: Cluster, memory_cluster: MemoryCluster) -> None:
    assert await cluster.trust(KIND, CONFIGURATION, "QQ==")
    assert memory_cluster.bundles[f"{KIND}/{CONFIGURATION}"] == "QQ=="


async def test_webhooks_are_replaced_once(cluster: Cluster) -> None:
    found = await cluster.mutating_webhooks(CONFIGURATION)
    assert await cluster.replace_mutating_webhooks(CONFIGURATION, found.version, [{"name": "one"}])
    assert not await cluster.replace_mutating_webhooks(CONFIGURATION, found.version, [])
    replaced = await cluster.mutating_webhooks(CONFIGURATION)
    assert [one["name"] for one in replaced.webhooks] == ["one"]
    assert replaced.version != found.version


async def test_labels(cluster: Cluster) -> None:
    assert await cluster.namespace_labels("team") == {"a": "b"}
    assert await cluster.namespace_labels("plain") == {}


@pytest.mark.parametrize(
    "name", ["team?x=1", "team/../plain", "team/secrets/podferry-webhook", "team#", "..", ""]
)
async def test_a_reviews_namespace_cannot_ask_for_anything_else(client: KubeClient, name: str) -> None:
    """Clients other than API servers may write anything there, and what is found is cached."""
    with pytest.raises(NotFound):
        await client.namespace_labels(name)


async def test_what_is_not_there(cluster: Cluster) -> None:
    for call in (
        cluster.secret("absent"),
        cluster.config_map("absent"),
        cluster.replace_secret({"metadata": {"name": "absent", "resourceVersion": "1"}}),
        cluster.trust(KIND, "absent", "QQ=="),
        cluster.mutating_webhooks("absent"),
        cluster.replace_mutating_webhooks("absent", "1", []),
        cluster.namespace_labels("absent"),
    ):
        with pytest.raises(NotFound):
            await call


async def test_only_webhooks_that_do_not_trust_are_patched(client: KubeClient, api: Any) -> None:
    api.cluster.bundles[f"{KIND}/{CONFIGURATION}"] = "QQ=="
    assert await client.trust(KIND, CONFIGURATION, "QQ==")
    assert api.patches == [[{"op": "add", "path": "/webhooks/1/clientConfig/caBundle", "value": "QQ=="}]]


async def test_a_token_that_was_replaced_is_read_again(client: KubeClient, account: Path) -> None:
    await client.secret(SECRET)
    (account / "token").write_text("token-2")
    await client.secret(SECRET)


@pytest.mark.parametrize(("status", "error"), [(401, AccessDenied), (403, AccessDenied), (500, Unavailable)])
async def test_refusals(client: KubeClient, api: Any, status: int, error: type[Exception]) -> None:
    api.status = status
    with pytest.raises(error, match="GET /api/v1/namespaces/team"):
        await client.namespace_labels("team")


async def test_a_server_that_is_gone(account: Path) -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(Unavailable):
            await KubeClient(session, "http://127.0.0.1:1", account).secret(SECRET)


async def test_what_it_writes_is_named_after_it(account: Path) -> None:
    shutil.copy(certifi.where(), account / "ca.crt")
    async with cluster_session(account) as session:
        assert session.headers["User-Agent"] == USER_AGENT


def test_where_the_server_is() -> None:
    for host, url in (("10.0.0.1", "https://10.0.0.1:443"), ("fd00::1", "https://[fd00::1]:443")):
        environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"}
        assert in_cluster_url(environ) == url
    with pytest.raises(InvalidSpec, match="this is not a pod"):
        in_cluster_url({})


async def test_a_token_is_reviewed(api: Any, client: KubeClient) -> None:
    assert await client.review_token("good", "podferry-cache") == {"authenticated": True}
    assert await client.review_token("bad", "podferry-cache") == {}
    [first, _] = api.reviews
    assert first["spec"] == {"token": "good", "audiences": ["podferry-cache"]}
    assert (first["kind"], first["apiVersion"]) == ("TokenReview", "authentication.k8s.io/v1")


async def test_the_endpoints_of_a_service_of_its_own_namespace(api: Any, client: KubeClient) -> None:
    found = {"endpoints": [{"addresses": ["10.0.0.1"]}]}
    api.slices["kubernetes.io/service-name=podferry-cache-digits"] = [found]
    assert await client.endpoint_slices("podferry-cache-digits") == [found]
    assert await client.endpoint_slices("other") == []


async def test_the_pods_that_a_stateful_set_is_to_have(client: KubeClient) -> None:
    assert await client.replicas("podferry-cache-digits") == 3
    with pytest.raises(NotFound):
        await client.replicas("other")
