"""Shared fixtures of the webhook's tests."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from podferry.contract.annotations import read_annotations
from podferry.contract.errors import NotFound
from podferry.contract.spec import PREFIX, FerrySpec
from podferry.webhook.cluster.kube import MUTATING, KubeClient
from podferry.webhook.cluster.rotation import Rotation
from podferry.webhook.injection.inject import inject
from podferry.webhook.pod.json_patch import apply
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.policy.policy import Policy
from tests.support.memory_cluster import MemoryCluster

RECORDED = Path(__file__).parents[1] / "data" / "kfp-pods"
Pod = dict[str, Any]
REFERENCE = f"s3://datasets/digits#sha256={'a1' * 32}&bytes=104857600&files=1797"
SETTINGS = {"dataset": REFERENCE, "checkpoints": "s3://checkpoints/team", "checkpoint-size": "100Mi"}


@pytest.fixture
def policy() -> Policy:
    """The default policy."""
    return Policy(image="registry.example.com/podferry:1")


@pytest.fixture
def annotated_pod() -> Callable[..., Pod]:
    """A bare pod with these settings (`_` for `-`), or with a dataset and checkpoints."""

    def make(**settings: str) -> Pod:
        chosen = {name.replace("_", "-"): text for name, text in settings.items()} or SETTINGS
        annotations = {PREFIX + name: text for name, text in chosen.items()}
        metadata = {"name": "digits", "namespace": "team", "annotations": annotations}
        return copy.deepcopy(
            {"metadata": metadata, "spec": {"containers": [{"name": "train", "image": "pytorch"}]}}
        )

    return make


@pytest.fixture
def controlled() -> Callable[[Pod], Pod]:
    """The pod as a Job creates it."""

    def make(pod: Pod) -> Pod:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "digits", "controller": True}
        pod["metadata"]["ownerReferences"] = [owner]
        return pod

    return make


@pytest.fixture(scope="session")
def recorded() -> Callable[[str], Pod]:
    """The recorded pod of that name."""

    def read(name: str) -> Pod:
        pod: Pod = json.loads((RECORDED / f"{name}.json").read_text())
        return pod

    return read


class ApiServer:
    """The part of an API server that the webhook uses, backed by a `MemoryCluster`."""

    def __init__(self, cluster: MemoryCluster, account: Path) -> None:
        self.cluster, self._account = cluster, account
        self.status: int | None = None
        self.patches: list[Any] = []
        self.reviews: list[Any] = []
        self.slices: dict[str, list[Any]] = {}

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        secret = "/api/v1/namespaces/podferry/secrets/{name}"
        configuration = "/apis/admissionregistration.k8s.io/v1/{kind}/{name}"
        app.router.add_get(secret, self._secret)
        app.router.add_put(secret, self._replace)
        config_map = "/api/v1/namespaces/podferry/configmaps/{name}"
        app.router.add_get(config_map, self._config_map)
        app.router.add_put(config_map, self._replace_config_map)
        app.router.add_get(configuration, self._configuration)
        app.router.add_patch(configuration, self._trust)
        app.router.add_get("/api/v1/namespaces/{name}", self._namespace)
        app.router.add_get("/api/v1/services", self._services)
        app.router.add_get("/api/v1/namespaces/{namespace}/services", self._services)
        slices = "/apis/discovery.k8s.io/v1/namespaces/podferry/endpointslices"
        app.router.add_get(slices, self._endpoint_slices)
        app.router.add_get(
            "/apis/apps/v1/namespaces/podferry/statefulsets/podferry-cache-digits", self._stateful_set
        )
        app.router.add_get("/api/v1/persistentvolumes", self._volumes)
        app.router.add_post("/apis/authentication.k8s.io/v1/tokenreviews", self._review_token)
        return app

    async def _services(self, request: web.Request) -> web.Response:
        namespace = request.match_info.get("namespace", "")
        items = [
            one async for one in self.cluster.labelled_services(request.query["labelSelector"], namespace)
        ]
        start, limit = int(request.query.get("continue", "0")), int(request.query["limit"])
        rest = {"continue": str(start + limit)} if start + limit < len(items) else {}
        found = items[start : start + limit]
        return web.json_response({"kind": "ServiceList", "metadata": rest, "items": found})

    async def _stateful_set(self, _: web.Request) -> web.Response:
        return web.json_response({"spec": {"replicas": 3}})

    async def _endpoint_slices(self, request: web.Request) -> web.Response:
        return web.json_response({"items": self.slices.get(request.query["labelSelector"], [])})

    async def _volumes(self, request: web.Request) -> web.Response:
        items = [one async for one in self.cluster.labelled_volumes(request.query["labelSelector"])]
        return web.json_response({"kind": "PersistentVolumeList", "metadata": {}, "items": items})

    async def _review_token(self, request: web.Request) -> web.Response:
        review = await request.json()
        self.reviews.append(review)
        status = {"authenticated": True} if review["spec"]["token"] == "good" else {}
        return web.json_response({**review, "status": status}, status=201)

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if self.status is not None:
            return web.Response(status=self.status, text='{"message": "no"}')
        token = (self._account / "token").read_text().strip()
        if request.headers.get("Authorization") != f"Bearer {token}":
            return web.Response(status=401)
        try:
            response: web.StreamResponse = await handler(request)
        except NotFound:
            return web.Response(status=404)
        return response

    async def _secret(self, request: web.Request) -> web.Response:
        return web.json_response(await self.cluster.secret(request.match_info["name"]))

    async def _replace(self, request: web.Request) -> web.Response:
        secret = await request.json()
        replaced = await self.cluster.replace_secret(secret)
        return web.json_response(secret, status=200 if replaced else 409)

    async def _config_map(self, request: web.Request) -> web.Response:
        return web.json_response(await self.cluster.config_map(request.match_info["name"]))

    async def _replace_config_map(self, request: web.Request) -> web.Response:
        config_map = await request.json()
        replaced = await self.cluster.replace_config_map(config_map)
        return web.json_response(config_map, status=200 if replaced else 409)

    def _key(self, request: web.Request) -> str:
        return f"{request.match_info['kind']}/{request.match_info['name']}"

    async def _configuration(self, request: web.Request) -> web.Response:
        if self._key(request) not in self.cluster.bundles:
            return web.Response(status=404)
        bundle = self.cluster.bundles[self._key(request)]
        trusting: dict[str, Any] = {"clientConfig": {"caBundle": bundle} if bundle else {}}
        version, entries = "1", [trusting, {"clientConfig": {}}]
        if request.match_info["kind"] == MUTATING:
            found = await self.cluster.mutating_webhooks(request.match_info["name"])
            version, entries = found.version, found.webhooks or entries
        return web.json_response({"metadata": {"resourceVersion": version}, "webhooks": entries})

    async def _trust(self, request: web.Request) -> web.Response:
        assert request.content_type == "application/json-patch+json"
        patch = json.loads(await request.read())
        self.patches.append(patch)
        if patch[0]["path"] == "/metadata/resourceVersion":
            return await self._replace_webhooks(request.match_info["name"], patch)
        self.cluster.bundles[self._key(request)] = patch[0]["value"]
        return web.json_response({})

    async def _replace_webhooks(self, name: str, patch: list[Any]) -> web.Response:
        version, webhooks = (one["value"] for one in patch)
        replaced = await self.cluster.replace_mutating_webhooks(name, version, webhooks)
        return web.json_response({"metadata": {}}, status=200 if replaced else 409)

    async def _namespace(self, request: web.Request) -> web.Response:
        labels = await self.cluster.namespace_labels(request.match_info["name"])
        return web.json_response({"metadata": {"labels": labels} if labels else {}})


@pytest.fixture
def account(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("token-1\n")
    (tmp_path / "namespace").write_text("podferry")
    return tmp_path


@pytest.fixture
def memory_cluster() -> MemoryCluster:
    cluster = MemoryCluster("podferry-webhook", "podferry")
    cluster.namespaces = {"team": {"a": "b"}, "plain": {}}
    cluster.add_config_map("podferry-last-policy")
    return cluster


@pytest.fixture
def api(memory_cluster: MemoryCluster, account: Path) -> ApiServer:
    return ApiServer(memory_cluster, account)


@pytest.fixture
def cluster() -> MemoryCluster:
    """A cluster without namespaces."""
    return MemoryCluster("podferry-webhook", "podferry")


@pytest.fixture
def rotation(cluster: MemoryCluster) -> Rotation:
    """The certificates of one replica, which waits for nothing."""
    return Rotation(cluster, "podferry-webhook", "podferry", ["localhost"], settle=0.0)


@pytest.fixture
def injected(annotated_pod: Callable[..., Pod], policy: Policy) -> Pod:
    """The annotated pod after a first pass."""
    pod = annotated_pod()
    return apply(pod, inject(pod, Namespace("team"), policy).patch)


@pytest.fixture
def spec() -> Callable[..., FerrySpec]:
    """The spec of annotations with these settings (`_` for `-`)."""

    def read(**settings: str) -> FerrySpec:
        named = {PREFIX + name.replace("_", "-"): text for name, text in settings.items()}
        found = read_annotations(named)
        assert found is not None
        return found

    return read


@pytest.fixture
async def client(api: Any, account: Path) -> AsyncIterator[KubeClient]:
    runner = web.AppRunner(api.application())
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with aiohttp.ClientSession() as session:
        yield KubeClient(session, f"http://127.0.0.1:{runner.addresses[0][1]}", account)
    await runner.cleanup()
