"""Reads the pods and pod templates of a live cluster, by kubeconfig."""

from __future__ import annotations

import json
from collections.abc import Callable
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
    lists: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
        "Job": (batch.list_job_for_all_namespaces, batch.list_namespaced_job),
        "CronJob": (batch.list_cron_job_for_all_namespaces, batch.list_namespaced_cron_job),
        "Deployment": (apps.list_deployment_for_all_namespaces, apps.list_namespaced_deployment),
        "StatefulSet": (apps.list_stateful_set_for_all_namespaces, apps.list_namespaced_stateful_set),
        "Pod": (core.list_pod_for_all_namespaces, core.list_namespaced_pod),
    }
    found = _namespaces(core, namespace)
    for kind, (of_all, of_one) in lists.items():
        what = f"{kind}s in {namespace or 'all namespaces'}"
        response = _answer("list", what, *((of_all,) if namespace is None else (of_one, namespace)))
        objects = [{**item, "kind": kind} for item in response["items"]]
        found += [one for one in objects if not _shown_by_owner(one)]
    return found


def _namespaces(core: Any, name: str | None) -> list[Object]:
    if name is None:
        found = _answer("list", "Namespaces", core.list_namespace)["items"]
    else:
        found = [_answer("get", f"the Namespace {name}", core.read_namespace, name)]
    return [{**one, "kind": "Namespace"} for one in found]


def _answer(verb: str, what: str, call: Callable[..., Any], *arguments: str) -> Any:
    """The answer as plain JSON: a typed client would drop the fields that it does not know."""
    from kubernetes.client import ApiException  # noqa: PLC0415
    from urllib3.exceptions import HTTPError  # noqa: PLC0415

    try:
        response = call(*arguments, _preload_content=False, _request_timeout=TIMEOUT_SECONDS)
    except ApiException as error:
        reason = f"{error.status} {error.reason}"
        remedy = f"Use an account that may {verb} {what}"
        raise Unavailable.of(f"cannot {verb} {what}", reason, remedy) from error
    except HTTPError as error:
        remedy = "Check the server in the kubeconfig, and that you reach it"
        raise Unavailable.of(f"cannot {verb} {what}", str(error), remedy) from error
    return json.loads(response.data)


def _shown_by_owner(thing: Object) -> bool:
    owners = thing["metadata"].get("ownerReferences") or []
    kinds = {"CronJob"} if thing["kind"] == "Job" else LISTED_OWNERS
    return thing["kind"] in {"Job", "Pod"} and any(one["kind"] in kinds for one in owners)
