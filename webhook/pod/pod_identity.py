"""Workload identity: what other webhooks gave the trainer, for the agent.

Identity webhooks add variables and a projected token to the containers that they see. Those that come before
podferry's webhook and are never called again have not seen the agent, which would find no credentials.
Sources: the webhooks of Amazon EKS (IRSA and Pod Identity), Azure Workload Identity, Google's workload
identity federation, and Alibaba Cloud's RRSA.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable

import msgspec

from podferry.contract.spec import FerrySpec
from podferry.webhook.pod.pod_json import Json, mounts_of, volumes_of


class IdentityKind(msgspec.Struct, frozen=True):
    """One vendor's way.

    Attributes:
        token_file: The variable with the path of a file in a volume of its own.
        variables: Others that are copied, too.
        required: Those without which the file is none of an identity.
        other_tokens: Whether the file may name tokens in other volumes.
    """

    token_file: str
    variables: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    other_tokens: bool = False


AWS_SHARED = ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_STS_REGIONAL_ENDPOINTS", "AWS_ENDPOINT_URL_STS")
IDENTITY_KINDS = (
    IdentityKind("AWS_WEB_IDENTITY_TOKEN_FILE", ("AWS_ROLE_SESSION_NAME", *AWS_SHARED), ("AWS_ROLE_ARN",)),
    IdentityKind(
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", *AWS_SHARED),
    ),
    IdentityKind(
        "AZURE_FEDERATED_TOKEN_FILE", ("AZURE_AUTHORITY_HOST",), ("AZURE_CLIENT_ID", "AZURE_TENANT_ID")
    ),
    IdentityKind("GOOGLE_APPLICATION_CREDENTIALS", other_tokens=True),
    IdentityKind(
        "ALIBABA_CLOUD_OIDC_TOKEN_FILE", (), ("ALIBABA_CLOUD_ROLE_ARN", "ALIBABA_CLOUD_OIDC_PROVIDER_ARN")
    ),
)
SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where Kubernetes mounts the service account's token for its own API, in every container."""


class PodIdentity(msgspec.Struct, frozen=True):
    """What the agent's container gets: entries of `env` and `volumeMounts`, as the trainer has them."""

    env: tuple[Json, ...] = ()
    mounts: tuple[Json, ...] = ()


def identity_of(pod: Json, trainer: Json, spec: FerrySpec) -> PodIdentity:
    """The trainer's identity; none if every direction has a Secret, which is used alone."""
    if all(section.access.secret for section in (*spec.datasets, spec.checkpoints, spec.outputs) if section):
        return PodIdentity()
    found = {one["name"]: one for one in trainer.get("env") or []}
    if not any(kind.token_file in found for kind in IDENTITY_KINDS):
        return PodIdentity()
    files, tokens = _mounts(pod, trainer, _is_projected), _mounts(pod, trainer, _has_token)
    names: dict[str, None] = {}
    mounts: dict[str, Json] = {}
    for kind in IDENTITY_KINDS:
        mount = _mount_of(found.get(kind.token_file, {}).get("value") or "", files)
        if mount is not None and found.keys() >= set(kind.required):
            wanted = (kind.token_file, *kind.required, *kind.variables)
            names |= dict.fromkeys(name for name in wanted if name in found)
            mounts |= {_path(one): one for one in (mount, *(tokens if kind.other_tokens else ()))}
    read_only = tuple({**one, "readOnly": True} for one in mounts.values())
    return PodIdentity(tuple(found[name] for name in names), read_only)


def _mounts(pod: Json, trainer: Json, wanted: Callable[[Json], bool]) -> list[Json]:
    """The trainer's mounts of volumes of a kind, but for the service account's own."""
    names = {name for name, volume in volumes_of(pod).items() if wanted(volume)}
    return [one for one in mounts_of(trainer) if one.get("name") in names and _path(one) != SERVICE_ACCOUNT]


def _is_projected(volume: Json) -> bool:
    """Whether an identity webhook makes such volumes; a Secret's would be the trainer's own credentials."""
    return bool(volume.get("projected") or volume.get("downwardAPI"))


def _has_token(volume: Json) -> bool:
    sources = (volume.get("projected") or {}).get("sources") or []
    return any(one.get("serviceAccountToken") for one in sources)


def _mount_of(path: str, mounts: list[Json]) -> Json | None:
    """The innermost mount that a path is in."""
    inside = [one for one in mounts if posixpath.normpath(path).startswith(f"{_path(one)}/")]
    return max(inside, key=lambda one: len(_path(one)), default=None)


def _path(mount: Json) -> str:
    return str(mount.get("mountPath", "")).rstrip("/")
