"""The injection policy: the cluster administrator's settings. `policy_yaml` reads it."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from functools import cached_property
from typing import Any

import msgspec

GIB, MIB = 1024**3, 1024**2


class OnInvalid(StrEnum):
    """What happens to a pod with invalid settings.

    GATE: A bare pod is denied. A controlled pod gets a gate that reports the reason and fails it, since its
        controller would silently retry after a denial.
    DENY: Every such pod is denied.
    """

    GATE = "gate"
    DENY = "deny"


class Enforcement(StrEnum):
    """What the webhook does with what it decides.

    INJECT: Pods are changed, and invalid ones refused.
    AUDIT: Pods only get stamps that say what would happen.
    DISABLED: Nothing is decided; pods that opt in start as they are.
    """

    INJECT = "inject"
    AUDIT = "audit"
    DISABLED = "disabled"


class Defaults(msgspec.Struct, frozen=True):
    """Defaults for settings that a pod does not have.

    Attributes:
        dataset_size: Bytes to reserve for a dataset whose reference has no size; None to require it.
        checkpoint_size: Bytes of one checkpoint; None to require it, but for KFP steps, which then have 1Gi.
        output_size: Bytes of all outputs; likewise.
        shm_size: Bytes of the trainer's `/dev/shm`; with the runtimes' 64 MiB, data loaders fail.
        grace: Minimum termination grace, seconds, of a pod with checkpoints or outputs.
        upload_rate: Assumed bytes per second of the last uploads, to compute the grace.
        sidecar_cpu: CPU request of the agent.
        sidecar_cpu_limit: CPU limit of the agent and of the gate, for namespaces whose quota or LimitRange
            requires one; None for no limit, with which the prefetch is fastest.
        gate_cpu: CPU request of the gate.
        gate_memory: Bytes; memory request and limit of the gate.
    """

    dataset_size: int | None = None
    checkpoint_size: int | None = None
    output_size: int | None = None
    shm_size: int = GIB
    grace: int = 60
    upload_rate: int = 50 * MIB
    sidecar_cpu: str = "100m"
    sidecar_cpu_limit: str | None = None
    gate_cpu: str = "10m"
    gate_memory: int = 64 * MIB


class Bounds(msgspec.Struct, frozen=True):
    """Upper bounds for what podferry changes.

    Attributes:
        sidecar_memory: Bytes of the agent's memory limit, including the dataset.
        trainer_raise: Bytes by which a trainer's memory may be raised for its checkpoints and outputs.
        grace: Seconds of termination grace that podferry may set.
    """

    sidecar_memory: int = 64 * GIB
    trainer_raise: int = 32 * GIB
    grace: int = 600


class AllowedLocations(msgspec.Struct, frozen=True):
    """Globs over URIs, see `podferry.contract.location_globs`; `$(namespace)` is the pod's namespace.

    Attributes:
        sources: Allowed locations of datasets, and of checkpoints that are restored by URI.
        destinations: Allowed locations for checkpoints and outputs.
        endpoints: Services that `endpoint` annotations may name.
    """

    sources: tuple[str, ...] = ("*",)
    destinations: tuple[str, ...] = ("*",)
    endpoints: tuple[str, ...] = ("*",)


class PodSelector(msgspec.Struct, frozen=True):
    """Which pods a rule or a guardrail applies to: those that fulfil all that is set.

    Attributes:
        namespaces: Globs over the namespace's name.
        namespace_labels: Labels that the namespace has.
        labels: Labels that the pod has.
        owners: Kinds of the pod's owner, such as `Job`; `Pod` for a pod without one.
        gpus: Minimum number of GPUs that its containers request.
    """

    namespaces: tuple[str, ...] = ()
    namespace_labels: dict[str, str] = {}
    labels: dict[str, str] = {}
    owners: tuple[str, ...] = ()
    gpus: int = 0


class InjectionRule(msgspec.Struct, frozen=True):
    """Annotations for pods that do not have them.

    Attributes:
        name: A pod that got them is stamped with it.
        match: The pods.
        annotations: By name without the prefix.
        enforcement: `INJECT` or `AUDIT`, for pods that have no annotation of their own.
    """

    name: str
    match: PodSelector
    annotations: dict[str, str]
    enforcement: Enforcement = Enforcement.INJECT


class Guardrail(msgspec.Struct, frozen=True):
    """Locations that pods of some namespaces may use; it only narrows the policy's own.

    Attributes:
        match: The namespaces.
        allowed: See `AllowedLocations`.
    """

    match: PodSelector
    allowed: AllowedLocations


class EgressProxy(msgspec.Struct, frozen=True):
    """The proxy between the agents and their stores.

    Attributes:
        https, http: URLs of the proxies for `https` and `http` addresses; None for direct connections.
        no_proxy: Hosts, domains and networks that are reached directly, as in `NO_PROXY`.
    """

    https: str | None = None
    http: str | None = None
    no_proxy: tuple[str, ...] = ()


class Policy(msgspec.Struct, frozen=True, dict=True):
    """An injection policy.

    Attributes:
        image: Of the agent and the gate.
        image_pull_policy: As in Kubernetes; None for its default.
        agent_port: On loopback, the same in every pod.
        enforcement, on_invalid, defaults, bounds, allowed: See their types.
        guardrails: All that match a pod's namespace apply.
        datasets: References by name, for `podferry.io/dataset: NAME`.
        ca_bundle: CA certificates as PEM that agents trust in addition to the system's.
        proxy: See `EgressProxy`.
        network_sidecars: Containers that carry a pod's traffic, in addition to those of known meshes.
        rules: The first that matches a pod applies.
        image_volumes: Whether the cluster has image volumes, for datasets in images.
    """

    image: str
    image_pull_policy: str | None = None
    agent_port: int = 8471
    enforcement: Enforcement = Enforcement.INJECT
    on_invalid: OnInvalid = OnInvalid.GATE
    defaults: Defaults = Defaults()
    bounds: Bounds = Bounds()
    allowed: AllowedLocations = AllowedLocations()
    guardrails: tuple[Guardrail, ...] = ()
    datasets: dict[str, str] = {}
    ca_bundle: str = ""
    proxy: EgressProxy = EgressProxy()
    network_sidecars: tuple[str, ...] = ()
    rules: tuple[InjectionRule, ...] = ()
    image_volumes: bool = False

    @cached_property
    def digest(self) -> str:
        """Twelve hexadecimal digits that identify the policy; each injected pod is stamped with them.

        Settings at their defaults do not count, so that a new key changes no digest.
        """
        settings = _changed(msgspec.to_builtins(self), msgspec.to_builtins(Policy(image="")))
        return hashlib.sha256(msgspec.json.encode(settings, order="sorted")).hexdigest()[:12]


def _changed(values: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """The values that differ from the defaults, section by section."""
    changed = {}
    for name, value in values.items():
        default = defaults.get(name)
        if value == default:
            continue
        sections = isinstance(value, dict) and isinstance(default, dict)
        changed[name] = _changed(value, default or {}) if sections else value
    return changed
