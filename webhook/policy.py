"""The injection policy: the cluster administrator's settings. `policy_yaml` reads it."""

from __future__ import annotations

import hashlib
from enum import StrEnum

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


class Defaults(msgspec.Struct, frozen=True):
    """Defaults for settings that a pod does not have.

    Attributes:
        dataset_size: Bytes to reserve for a dataset whose reference has no size; None to require it.
        checkpoint_size: Bytes of one checkpoint; None to require it.
        output_size: Bytes of all outputs; None to require it.
        shm_size: Bytes of the trainer's `/dev/shm`; with the runtimes' 64 MiB, data loaders fail.
        grace: Minimum termination grace, seconds, of a pod with checkpoints or outputs.
        upload_rate: Assumed bytes per second of the last uploads, to compute the grace.
        sidecar_cpu: CPU request of the agent.
    """

    dataset_size: int | None = None
    checkpoint_size: int | None = None
    output_size: int | None = None
    shm_size: int = GIB
    grace: int = 60
    upload_rate: int = 50 * MIB
    sidecar_cpu: str = "100m"


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
    """Guardrails: globs over URIs, where `*` matches slashes too; one that ends with `/` allows all below it.

    Attributes:
        sources: Allowed locations of datasets, and of checkpoints that are restored by URI.
        destinations: Allowed locations for checkpoints and outputs.
        endpoints: Services that `endpoint` annotations may name.
    """

    sources: tuple[str, ...] = ("*",)
    destinations: tuple[str, ...] = ("*",)
    endpoints: tuple[str, ...] = ("*",)


class Policy(msgspec.Struct, frozen=True):
    """An injection policy.

    Attributes:
        image: Of the agent and the gate.
        image_pull_policy: As in Kubernetes; None for its default.
        agent_port: On loopback, the same in every pod.
        on_invalid: See `OnInvalid`.
        defaults, bounds, allowed: See their types.
        datasets: References by name, for `podferry.io/dataset: NAME`.
    """

    image: str
    image_pull_policy: str | None = None
    agent_port: int = 8471
    on_invalid: OnInvalid = OnInvalid.GATE
    defaults: Defaults = Defaults()
    bounds: Bounds = Bounds()
    allowed: AllowedLocations = AllowedLocations()
    datasets: dict[str, str] = {}

    @property
    def digest(self) -> str:
        """Twelve hexadecimal digits that identify the policy; each injected pod is stamped with them."""
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()[:12]
