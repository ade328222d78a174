"""The types of what the webhook reads in a pod.

An API server decodes objects before webhooks see them; files that people write, and other clients, may
contain anything. Only for validation: the pod itself stays plain JSON, with fields that are not listed here.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from podferry.contract.errors import InvalidSpec

MAX_ANNOTATIONS = 4096
"""They may have 256 KiB, but an API server checks that only after the webhooks: 3 MiB of them took seconds,
in which other reviews waited."""
Quantity = str | int | float


class _Named(msgspec.Struct):
    name: str


class _Variable(_Named):
    value: str | None = None


class _Mount(_Named, rename="camel"):
    mount_path: str
    sub_path: str | None = None


class _Resources(msgspec.Struct):
    limits: dict[str, Quantity] | None = None
    requests: dict[str, Quantity] | None = None


class _SecurityContext(msgspec.Struct, rename="camel"):
    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    fs_group: int | None = None


class _PodContainer(_Named, rename="camel"):
    image: str | None = None
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[_Variable] | None = None
    volume_mounts: list[_Mount] | None = None
    resources: _Resources | None = None
    security_context: _SecurityContext | None = None
    restart_policy: str | None = None


class _Projected(msgspec.Struct):
    sources: list[dict[str, Any]] | None = None


class _Volume(_Named, rename="camel"):
    empty_dir: dict[str, Any] | None = None
    projected: _Projected | None = None


class _Os(msgspec.Struct):
    name: str | None = None


class _PodAffinity(msgspec.Struct):
    preferred: list[dict[str, Any]] | None = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=None
    )


class _Affinity(msgspec.Struct, rename="camel"):
    pod_affinity: _PodAffinity | None = None


class _Spec(msgspec.Struct, rename="camel"):
    containers: list[_PodContainer]
    init_containers: list[_PodContainer] | None = None
    volumes: list[_Volume] | None = None
    security_context: _SecurityContext | None = None
    resources: _Resources | None = None
    termination_grace_period_seconds: int | None = None
    host_network: bool | None = None
    share_process_namespace: bool | None = None
    node_selector: dict[str, str] | None = None
    affinity: _Affinity | None = None
    os: _Os | None = None


class _Owner(_Named):
    kind: str
    controller: bool | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    labels: dict[str, str] | None = None
    annotations: Annotated[dict[str, str], msgspec.Meta(max_length=MAX_ANNOTATIONS)] | None = None
    owner_references: list[_Owner] | None = None


class _Pod(msgspec.Struct):
    spec: _Spec
    metadata: _Metadata | None = None


def check_types(pod: Any) -> None:
    """Raise `InvalidSpec` if the pod is malformed, with the first place at which it is."""
    try:
        msgspec.convert(pod, _Pod)
    except msgspec.ValidationError as error:
        remedy = 'Correct it; quote the values of annotations: "true"'
        raise InvalidSpec.of("the pod is malformed", str(error), remedy) from error
