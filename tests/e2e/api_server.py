"""Many requests to the API server: over open connections, where kubectl would start a process for each."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from kubernetes import client, config

from tests.cluster.process import patient
from tests.e2e.manifests import Object
from tests.e2e.namespace import Namespace


class ApiServer:
    """Creates pods in one namespace."""

    def __init__(self, api: client.CoreV1Api, namespace: str) -> None:
        self._api, self._namespace = api, namespace

    def create(self, pod: Object, *, dry_run: bool = False) -> tuple[int, Any]:
        """The status, and the created pod or the reason against it."""
        options: dict[str, Any] = {"dry_run": "All"} if dry_run else {}
        limit = patient(10)
        try:
            made = self._api.create_namespaced_pod(
                self._namespace, pod, _preload_content=False, _request_timeout=limit, **options
            )
        except client.ApiException as error:
            return error.status, json.loads(error.body)["message"]
        return made.status, json.loads(made.data)


@contextlib.contextmanager
def api_server_of(namespace: Namespace) -> Iterator[ApiServer]:
    """The API server as the administrator sees it; for the thread that enters the block."""
    with (
        namespace.cluster.network(),
        config.new_client_from_config(str(namespace.cluster.kubeconfig)) as connections,
    ):
        yield ApiServer(client.CoreV1Api(connections), namespace.name)
