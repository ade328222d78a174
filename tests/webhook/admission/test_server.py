"""The server over real TLS on loopback, with certificates of its own that change while it listens."""

import asyncio
import base64
import io
import json
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import jsonpatch
import pytest
from aiohttp.test_utils import TestServer

from podferry.contract.errors import Unavailable
from podferry.webhook.admission.listener import Listener
from podferry.webhook.admission.server import MAX_REVIEW_BYTES, Webhook
from podferry.webhook.cluster.kube import Cluster
from podferry.webhook.cluster.namespaces import ClusterNamespaces, UnknownNamespaces
from podferry.webhook.cluster.rotation import CONFIGURATIONS, Rotation
from podferry.webhook.pod.stamp import Signer
from podferry.webhook.policy.policy import Policy
from tests.support.memory_cluster import MemoryCluster

Pod = dict[str, Any]
NAMES = ["localhost"]
SECRET, CONFIGURATION = "podferry-webhook", "podferry"


@pytest.fixture
def webhook(policy: Policy, cluster: MemoryCluster, rotation: Rotation) -> Webhook:
    return Webhook(lambda: policy, ClusterNamespaces(cluster), rotation.signer)


@pytest.fixture
async def url(webhook: Webhook, rotation: Rotation) -> AsyncIterator[str]:
    await rotation.refresh()
    listener = Listener(webhook)
    yield f"https://localhost:{await listener.open('127.0.0.1', 0, rotation.context)}"
    await listener.close()


def trusting(cluster: MemoryCluster) -> ssl.SSLContext:
    """Trusts the bundle of the webhook configuration, as the API server does."""
    bundle = base64.b64decode(cluster.bundles[f"{CONFIGURATIONS[0]}/{CONFIGURATION}"]).decode()
    return ssl.create_default_context(cadata=bundle)


@pytest.fixture
async def client(url: str, cluster: MemoryCluster) -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(ssl=trusting(cluster))
    async with aiohttp.ClientSession(connector=connector) as session:
        yield session


def review(thing: Pod | None, namespace: str = "team", kind: str = "Pod", **request: Any) -> Pod:
    kind_of = {"group": "", "version": "v1", "kind": kind}
    asked = {"uid": "u-1", "kind": kind_of, "namespace": namespace, "object": thing, **request}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}


async def ask(client: aiohttp.ClientSession, url: str, document: Pod) -> Pod:
    async with client.post(url, json=document) as response:
        assert response.status == 200
        assert response.content_type == "application/json"
        answer: Pod = (await response.json())["response"]
    assert answer["uid"] == "u-1"
    return answer


async def test_a_pod_is_injected(
    client: aiohttp.ClientSession, url: str, cluster: MemoryCluster, annotated_pod: Callable[..., Pod]
) -> None:
    cluster.namespaces["team"] = {}
    pod = annotated_pod()
    answer = await ask(client, f"{url}/mutate?timeout=5s", review(pod, dryRun=True))
    assert answer["allowed"]
    assert answer["patchType"] == "JSONPatch"
    made = jsonpatch.apply_patch(pod, json.loads(base64.b64decode(answer["patch"])))
    assert made["metadata"]["annotations"]["podferry.io/status"] == "injected"
    again = await ask(client, f"{url}/mutate", review(made))
    assert again == {"uid": "u-1", "allowed": True}


async def test_other_pods_cause_no_cluster_call(
    client: aiohttp.ClientSession, url: str, cluster: MemoryCluster
) -> None:
    before = cluster.calls
    answer = await ask(client, f"{url}/mutate", review({"metadata": {}, "spec": {"containers": []}}))
    assert answer == {"uid": "u-1", "allowed": True}
    assert (await ask(client, f"{url}/mutate", review(None)))["allowed"]
    assert cluster.calls == before


async def test_a_bare_pod_is_denied_with_everything(
    client: aiohttp.ClientSession, url: str, annotated_pod: Callable[..., Pod]
) -> None:
    answer = await ask(client, f"{url}/mutate", review(annotated_pod(datset="x", keep_local="y")))
    assert not answer["allowed"]
    message = answer["status"]["message"]
    assert message.startswith("podferry: podferry.io/datset: unknown annotation")
    assert len(message.splitlines()) == 3


async def test_a_pod_with_a_controller_is_refused_by_a_gate(
    client: aiohttp.ClientSession,
    url: str,
    annotated_pod: Callable[..., Pod],
    controlled: Callable[[Pod], Pod],
) -> None:
    answer = await ask(client, f"{url}/mutate", review(controlled(annotated_pod(datset="x"))))
    assert answer["allowed"]
    gate = json.loads(base64.b64decode(answer["patch"]))[1]["value"]
    assert gate["name"] == "podferry-gate"
    assert answer["warnings"][0].startswith("podferry: podferry.io/datset")


async def test_labels_of_the_namespace_count(
    client: aiohttp.ClientSession, url: str, cluster: MemoryCluster, annotated_pod: Callable[..., Pod]
) -> None:
    cluster.namespaces = {"team": {}, "strict": {"pod-security.kubernetes.io/enforce": "restricted"}}
    assert (await ask(client, f"{url}/mutate", review(annotated_pod())))["allowed"]
    denied = await ask(client, f"{url}/mutate", review(annotated_pod(), "strict"))
    assert "restricted Pod Security" in denied["status"]["message"]


async def test_an_unresponsive_cluster_blocks_no_pod(
    client: aiohttp.ClientSession, url: str, cluster: MemoryCluster, annotated_pod: Callable[..., Pod]
) -> None:
    cluster.failure = Unavailable.of("no answer")
    assert (await ask(client, f"{url}/mutate", review(annotated_pod())))["allowed"]


async def test_jobs_are_validated(
    client: aiohttp.ClientSession, url: str, annotated_pod: Callable[..., Pod]
) -> None:
    def job(pod: Pod) -> Pod:
        template = {"metadata": {"annotations": pod["metadata"]["annotations"]}, "spec": pod["spec"]}
        metadata = {"name": "digits"}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}

    assert (await ask(client, f"{url}/validate", review(job(annotated_pod()), kind="Job")))["allowed"]
    denied = await ask(client, f"{url}/validate", review(job(annotated_pod(datset="x")), kind="Job"))
    assert not denied["allowed"]
    assert "Did you mean 'dataset'?" in denied["status"]["message"]


async def test_the_author_of_a_workload_reads_its_warnings(
    client: aiohttp.ClientSession, url: str, annotated_pod: Callable[..., Pod]
) -> None:
    pod = annotated_pod(checkpoints="s3://c/team", checkpoint_size="1Mi")
    template = {"metadata": {"annotations": pod["metadata"]["annotations"]}, "spec": pod["spec"]}
    replicas = {"Master": {"template": {"spec": pod["spec"]}}, "Worker": {"template": template}}
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "digits"},
        "spec": {"pytorchReplicaSpecs": replicas},
    }
    admitted = await ask(client, f"{url}/validate", review(job, kind="PyTorchJob"))
    assert admitted["allowed"]
    (warning,) = admitted["warnings"]
    assert warning.startswith("spec.pytorchReplicaSpecs.Worker: none of these pods is rank 0")


async def test_the_policy_is_validated(client: aiohttp.ClientSession, url: str) -> None:
    def config_map(text: str) -> Pod:
        return review(
            {"metadata": {"name": "podferry-policy"}, "data": {"policy.yaml": text}}, kind="ConfigMap"
        )

    valid = "apiVersion: podferry.io/v1alpha1\nkind: InjectionPolicy\nimage: podferry:1\n"
    assert (await ask(client, f"{url}/validate-policy", config_map(valid)))["allowed"]
    denied = await ask(client, f"{url}/validate-policy", config_map(valid + "agentPrt: 9000\n"))
    assert denied["status"]["message"].startswith("podferry: agentPrt: unknown key in the policy")


@pytest.mark.parametrize("path", ["/mutate", "/validate", "/validate-policy"])
@pytest.mark.parametrize(
    ("body", "encoding", "status"),
    [
        (b"{}", "identity", 400),
        (b'{"a":' * 100_000, "identity", 400),
        (b"\x1f\x8b", "gzip", 415),
        (b" " * (3 * 1024**2), "identity", 400),
        (b" " * (MAX_REVIEW_BYTES + 1), "identity", 413),
    ],
    ids=lambda value: str(value)[:10],
)
async def test_invalid_reviews(
    client: aiohttp.ClientSession, url: str, path: str, body: bytes, encoding: str, status: int
) -> None:
    headers = {} if encoding == "identity" else {"Content-Encoding": encoding}
    async with client.post(url + path, data=io.BytesIO(body), headers=headers) as response:
        assert response.status == status
        assert await response.text()


async def test_health(client: aiohttp.ClientSession, url: str, webhook: Webhook) -> None:
    async def status(path: str) -> int:
        async with client.get(url + path) as response:
            return response.status

    assert [await status(path) for path in ("/healthz", "/readyz", "/other")] == [200, 200, 404]
    webhook.shutting_down = True
    assert [await status(path) for path in ("/healthz", "/readyz")] == [200, 503]


async def test_obstacles_are_named(policy: Policy) -> None:
    webhook = Webhook(lambda: policy, UnknownNamespaces(), Signer, lambda: ["the certificate expired"])
    async with (
        TestServer(webhook.application()) as server,
        aiohttp.ClientSession() as client,
        client.get(server.make_url("/readyz")) as response,
    ):
        assert (response.status, await response.text()) == (503, "the certificate expired")


@pytest.mark.parametrize(
    ("path", "kind", "status"),
    [
        ("/mutate", {"group": "apps", "version": "v1", "kind": "Deployment"}, 400),
        ("/mutate", {"group": "", "version": "v2", "kind": "Pod"}, 400),
        ("/mutate", {}, 400),
        ("/validate", {"group": "batch", "version": "v1", "kind": "Job"}, 200),
    ],
)
async def test_other_kinds(
    client: aiohttp.ClientSession,
    url: str,
    annotated_pod: Callable[..., Pod],
    path: str,
    kind: dict[str, str],
    status: int,
) -> None:
    document = review(annotated_pod())
    document["request"]["kind"] = kind
    async with client.post(url + path, json=document) as response:
        assert response.status == status
        assert status == 200 or "only pods are injected" in await response.text()


@pytest.mark.parametrize(
    "job",
    [
        {"spec": []},
        {"spec": {"template": "x"}},
        {"metadata": [1]},
        {"spec": {"template": {"metadata": {"annotations": 7}}}},
    ],
)
async def test_templates_of_other_types(client: aiohttp.ClientSession, url: str, job: Any) -> None:
    async with client.post(f"{url}/validate", json=review(job, kind="Job")) as response:
        assert response.status in {200, 400}


async def test_a_certificate_changes_while_the_listener_stays(
    url: str, cluster: MemoryCluster, rotation: Rotation
) -> None:
    port = int(url.rpartition(":")[2])
    open_before = await Connection.open(port, cluster)
    stored = cluster.secrets[SECRET]["data"]
    stored["tls.crt"] = stored["ca.crt"]  # its names are not the webhook's
    await rotation.refresh()
    opened_after = await Connection.open(port, cluster)
    assert opened_after.certificate != open_before.certificate
    for connection in (open_before, opened_after):
        assert await connection.health() == b"HTTP/1.1 200 OK\r\n"
        await connection.close()


class Connection:
    """One TLS connection, to see its certificate and that it stays open."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.certificate: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)

    @classmethod
    async def open(cls, port: int, cluster: MemoryCluster) -> "Connection":
        context = trusting(cluster)
        return cls(
            *await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
        )

    async def health(self) -> bytes:
        self._writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return await self._reader.readline()

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


async def test_clients_without_trust_are_rejected(url: str) -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(f"{url}/healthz")


def test_both_are_clusters(cluster: MemoryCluster) -> None:
    _: Cluster = cluster
