"""Reads the pods and pod templates of a live cluster, by kubeconfig."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from podferry.contract.errors import InvalidSpec, Unavailable

LISTED_OWNERS = frozenset({"Job", "ReplicaSet", "StatefulSet", "DaemonSet"})
"""Owners whose templates are listed, directly or through their own owner: their pods would be shown twice."""
TIMEOUT_SECONDS = 30
Object = dict[str, Any]


def read_objects(
    kubeconfig: str | None = None, context: str | None = None, namespace: str | None = None
) -> list[Object]:
    """Namespaces, controllers with pod templates, and pods without such a controller.

    Args:
        kubeconfig: Its path; None for `$KUBECONFIG` or the default.
        context: In the kubeconfig; None for the current one.
        namespace: None for all.

    Raises:
        InvalidSpec: The kubeconfig cannot be used.
        Unavailable: The cluster does not answer, or denies a list.
        ImportError: The package `kubernetes` is not installed.
    """
    from kubernetes import client, config  # noqa: PLC0415 - only this verb needs it, and it loads much

    try:
        api = config.new_client_from_config(kubeconfig, context)
    except config.ConfigException as error:
        remedy = "Give --kubeconfig and --context"
        raise InvalidSpec.of("there is no usable kubeconfig", str(error), remedy) from error
    core, batch, apps = client.CoreV1Api(api), client.BatchV1Api(api), client.AppsV1Api(api)
    lists: dict[str, Callable[..., Any]] = {
        "Job": batch.list_job_for_all_namespaces,
        "CronJob": batch.list_cron_job_for_all_namespaces,
        "Deployment": apps.list_deployment_for_all_namespaces,
        "StatefulSet": apps.list_stateful_set_for_all_namespaces,
        "Pod": core.list_pod_for_all_namespaces,
    }
    found = list(_listed("Namespace", core.list_namespace))
    for kind, call in lists.items():
        objects = _listed(kind, call)
        found += [one for one in objects if not _shown_by_owner(one) and _is_in(one, namespace)]
    return found


def _listed(kind: str, call: Callable[..., Any]) -> Iterator[Object]:
    """All objects of a kind as plain JSON: a typed client would drop the fields that it does not know."""
    from kubernetes.client import ApiException  # noqa: PLC0415
    from urllib3.exceptions import HTTPError  # noqa: PLC0415

    try:
        response = call(_preload_content=False, _request_timeout=TIMEOUT_SECONDS)
    except ApiException as error:
        remedy = f"Use an account that may list {kind}s in all namespaces"
        reason = f"{error.status} {error.reason}"
        raise Unavailable.of(f"the cluster does not list {kind}s", reason, remedy) from error
    except HTTPError as error:
        remedy = "Check the server in the kubeconfig, and that you reach it"
        raise Unavailable.of(f"the cluster does not list {kind}s", str(error), remedy) from error
    for item in json.loads(response.data)["items"]:
        yield {**item, "kind": kind}


def _shown_by_owner(thing: Object) -> bool:
    owners = thing["metadata"].get("ownerReferences") or []
    kinds = {"CronJob"} if thing["kind"] == "Job" else LISTED_OWNERS
    return thing["kind"] in {"Job", "Pod"} and any(one["kind"] in kinds for one in owners)


def _is_in(thing: Object, namespace: str | None) -> bool:
    return namespace is None or thing["metadata"].get("namespace") == namespace
