"""Renders a cache: a StatefulSet of holders, a Service in front of them, and the right to review tokens.

Nothing in it needs privileges: the pods pass restricted Pod Security.
"""

from __future__ import annotations

from typing import Any

from podferry.cache.manifests.arguments import not_expanded
from podferry.cache.manifests.cache_spec import CacheSpec
from podferry.cache.manifests.shared_volumes import READ, STAGE, holder_claim, shared_volumes, stage_name
from podferry.contract.cache_api import (
    AUDIENCE,
    CACHE_LABEL,
    HEALTH_PATH,
    NODES_ANNOTATION,
    PORT,
    READERS_ANNOTATION,
    SOURCE_ANNOTATION,
)
from podferry.contract.claims import CLAIMS_DIR, claims_of
from podferry.contract.memory_sum import memory_sum
from podferry.contract.quantity import exact_quantity
from podferry.contract.spec import Medium
from podferry.webhook.injection.container_resources import sidecar_bytes
from podferry.webhook.injection.security_context import NONROOT_USER, RunAs, gate_context

Json = dict[str, Any]
ROLE = "podferry-cache"
"""The ClusterRole that lets a holder review tokens, and nothing else."""
STAGE_DIR, SECRET_DIR = "/podferry/held", "/podferry/secret"
FILES_DIR = f"{STAGE_DIR}/files"
HELD, SECRET, TOKEN, TEMPORARY, CLAIM = "held", "secret", "token", "tmp", "claim"
TOKEN_DIR, TOKEN_FILE = "/podferry/token", "token"
TOKEN_SECONDS = 600
"""For which a token is valid, at least: what Kubernetes allows. The kubelet renews it."""
TEMPORARY_DIR = "/podferry/tmp"


def manifests(spec: CacheSpec) -> tuple[Json, ...]:
    """The objects of a cache, in the order in which they are applied."""
    rights = _service_account(spec), _role(), _role_binding(spec), *_peer_rights(spec)
    volumes = shared_volumes(spec) if spec.shared else ()
    return *rights, _service(spec), *volumes, _stateful_set(spec)


def _meta(spec: CacheSpec, **more: Any) -> Json:
    return {
        "name": spec.object_name,
        "namespace": spec.namespace,
        "labels": {"app.kubernetes.io/name": "podferry-cache", CACHE_LABEL: spec.name},
        **more,
    }


def _service_account(spec: CacheSpec) -> Json:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _meta(spec)}


def _role() -> Json:
    rule = {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": ROLE},
        "rules": [rule],
    }


def _role_binding(spec: CacheSpec) -> Json:
    account = {"kind": "ServiceAccount", "name": spec.object_name, "namespace": spec.namespace}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        # No name of either has a dot: those of two caches differ.
        "metadata": {"name": f"{spec.object_name}.{spec.namespace}", "labels": _meta(spec)["labels"]},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE},
        "subjects": [account],
    }


def _peer_rights(spec: CacheSpec) -> tuple[Json, ...]:
    """What holders need to find each other, and to know how many there are: a single one may be joined."""
    find = {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list"]}
    count = {
        "apiGroups": ["apps"],
        "resources": ["statefulsets"],
        "resourceNames": [spec.object_name],
        "verbs": ["get"],
    }
    account = {"kind": "ServiceAccount", "name": spec.object_name, "namespace": spec.namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": spec.object_name}
    api = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    binding = {"roleRef": role, "subjects": [account]}
    return (
        {**api, "kind": "Role", "metadata": _meta(spec), "rules": [find, count]},
        {**api, "kind": "RoleBinding", "metadata": _meta(spec), **binding},
    )


def _service(spec: CacheSpec) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _meta(
            spec, annotations={SOURCE_ANNOTATION: spec.source, READERS_ANNOTATION: " ".join(spec.readers)}
        ),
        "spec": {
            "selector": {CACHE_LABEL: spec.name},
            "ports": [{"name": "http", "port": PORT, "targetPort": "http"}],
            # The holder on the reader's node, else another one. Without one anywhere, connections are refused
            # at once; `internalTrafficPolicy: Local` would drop them for ten seconds.
            "trafficDistribution": "PreferSameNode",
        },
    }


def _stateful_set(spec: CacheSpec) -> Json:
    labels = _meta(spec)["labels"]
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": _meta(spec, annotations={NODES_ANNOTATION: str(spec.nodes)}),
        "spec": {
            "serviceName": spec.object_name,
            "replicas": spec.nodes,
            # Holders do not depend on each other: one that cannot start must not stop the next.
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {CACHE_LABEL: spec.name}},
            "template": {"metadata": {"labels": labels}, "spec": _pod_spec(spec)},
        },
    }


def _pod_spec(spec: CacheSpec) -> Json:
    secret = spec.access.secret
    volumes: list[Json] = [{"name": HELD, "emptyDir": _empty_dir(spec)}]
    if spec.shared:
        claim = {"claimName": holder_claim(spec)}
        volumes = [
            {"name": HELD, "persistentVolumeClaim": claim},
            {"name": TEMPORARY, "emptyDir": {"sizeLimit": "64Mi"}},
        ]
    if secret:
        volumes.append({"name": SECRET, "secret": {"secretName": secret, "optional": True}})
    volumes += (  # read-only here, too: the kubelet does not change the owner of files then
        {"name": CLAIM, "persistentVolumeClaim": {"claimName": claim, "readOnly": True}}
        for claim in claims_of(spec.ferry)
    )
    token = {"path": TOKEN_FILE, "audience": AUDIENCE, "expirationSeconds": TOKEN_SECONDS}
    volumes.append({"name": TOKEN, "projected": {"sources": [{"serviceAccountToken": token}]}})
    apart = {
        "labelSelector": {"matchLabels": {CACHE_LABEL: spec.name}},
        "topologyKey": "kubernetes.io/hostname",
    }
    affinity: Json = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    if spec.node_affinity:
        affinity["nodeAffinity"] = dict(spec.node_affinity)
    return {
        "serviceAccountName": spec.object_name,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 5,
        **({"nodeSelector": dict(spec.selector)} if spec.selector else {}),
        **({"tolerations": list(spec.tolerations)} if spec.tolerations else {}),
        "affinity": affinity,
        "securityContext": {"fsGroup": NONROOT_USER},
        "containers": [_container(spec)],
        "volumes": volumes,
    }


def _space(spec: CacheSpec) -> str:
    return exact_quantity(memory_sum(spec.ferry).data[0].bytes)


def _empty_dir(spec: CacheSpec) -> Json:
    limit = {"sizeLimit": _space(spec)}
    return {**limit, "medium": "Memory"} if spec.medium is Medium.MEMORY else limit


def _container(spec: CacheSpec) -> Json:
    access, memory = spec.access, exact_quantity(sidecar_bytes(memory_sum(spec.ferry)))
    options: dict[str, str | None] = {
        "endpoint": access.endpoint,
        "region": access.region,
        "secret-dir": access.secret and SECRET_DIR,
        "refresh": f"{spec.refresh}s" if spec.refresh else None,
        "max-rate": exact_quantity(spec.max_rate) if spec.max_rate else None,
        "size": _space(spec),  # of a volume on disk, the kubelet only evicts the pod
    }
    directory, home = FILES_DIR, STAGE_DIR
    mounts: list[Json] = [{"name": HELD, "mountPath": STAGE_DIR}]
    if spec.shared:
        directory, home = f"{STAGE_DIR}/{STAGE}/{stage_name(spec)}", TEMPORARY_DIR
        options["shared"] = f"{STAGE_DIR}/{READ}/{stage_name(spec)}"
        mounts.append({"name": TEMPORARY, "mountPath": TEMPORARY_DIR})
    if access.secret:
        mounts.append({"name": SECRET, "mountPath": SECRET_DIR, "readOnly": True})
    mounts += (
        {"name": CLAIM, "mountPath": f"{CLAIMS_DIR}/{claim}", "readOnly": True}
        for claim in claims_of(spec.ferry)
    )
    # Not the number of holders: the template of pods that run must not change with it.
    mounts.append({"name": TOKEN, "mountPath": TOKEN_DIR, "readOnly": True})
    options.update({"service": spec.object_name, "token": f"{TOKEN_DIR}/{TOKEN_FILE}"})
    return {
        "name": "holder",
        "image": spec.image,
        "command": ["podferry"],
        "args": [
            *("cache", "serve", not_expanded(spec.source), directory, "--host=0.0.0.0", f"--port={PORT}"),
            *(f"--readers={glob}" for glob in (spec.namespace, *spec.readers)),
            *(f"--{name}={not_expanded(value)}" for name, value in options.items() if value),
        ],
        "env": [{"name": "HOME", "value": home}, {"name": "TMPDIR", "value": home}],
        "ports": [{"name": "http", "containerPort": PORT}],
        # Ready while it fetches: readers wait for it, and the dataset crosses the network once.
        "readinessProbe": _probe(periodSeconds=2),
        "livenessProbe": _probe(periodSeconds=20, failureThreshold=6),
        "terminationMessagePolicy": "FallbackToLogsOnError",  # `podferry cache status` shows it
        "resources": {"requests": {"cpu": "100m", "memory": memory}, "limits": {"memory": memory}},
        "securityContext": gate_context(RunAs(NONROOT_USER, NONROOT_USER)),
        "volumeMounts": mounts,
    }


def _probe(**timing: int) -> Json:
    return {"httpGet": {"path": HEALTH_PATH, "port": "http"}, "timeoutSeconds": 5, **timing}
