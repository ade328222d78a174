"""The injection policy: what the cluster's administrator decides, as one YAML document.

    apiVersion: podferry.io/v1alpha1
    kind: InjectionPolicy
    image: registry.example.com/podferry:0.1.0

`image` alone is required; all other keys stand in `KEYS`, each with its reading and its default. All that is
wrong is said at once, unknown keys with a suggestion.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum

import msgspec

GIB, MIB = 1024**3, 1024**2


class OnInvalid(StrEnum):
    """What happens to a pod whose wish cannot be carried out.

    GATE: A bare pod is denied; one with a controller gets a gate that tells the reason and fails it, since
        its controller would meet a denial by trying again in silence.
    DENY: Every pod is denied.
    """

    GATE = "gate"
    DENY = "deny"


class Defaults(msgspec.Struct, frozen=True):
    """What holds where a pod does not say.

    Attributes:
        dataset_size: Bytes reserved for a dataset whose reference does not tell; None asks the user.
        checkpoint_size: Bytes of one checkpoint; None asks the user.
        output_size: Bytes of all outputs; None asks the user.
        shm_size: Bytes of the trainer's `/dev/shm`; runtimes give 64 MiB, in which data loaders fail.
        grace: Seconds that a pod with checkpoints or outputs has to end in, at least.
        upload_rate: Bytes a second that the last uploads go with, by which the grace is computed.
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
    """How far podferry may go.

    Attributes:
        sidecar_memory: Bytes of the agent's memory limit, the dataset in it.
        trainer_raise: Bytes by which a trainer's memory may be raised for its checkpoints and outputs.
        grace: Seconds that a pod may take to end because of podferry.
    """

    sidecar_memory: int = 64 * GIB
    trainer_raise: int = 32 * GIB
    grace: int = 600


class AllowedLocations(msgspec.Struct, frozen=True):
    """Guard rails: globs over URIs, in which `*` spans slashes; one that ends with `/` allows all below it.

    Attributes:
        sources: Where datasets, and checkpoints that are restored by URI, may lie.
        destinations: Where checkpoints and outputs may go.
        endpoints: Which services `endpoint` annotations may name.
    """

    sources: tuple[str, ...] = ("*",)
    destinations: tuple[str, ...] = ("*",)
    endpoints: tuple[str, ...] = ("*",)


class Policy(msgspec.Struct, frozen=True):
    """One policy.

    Attributes:
        image: Of the agent and the gate.
        image_pull_policy: As Kubernetes has it; None for its default.
        agent_port: On loopback, the same in every pod.
        on_invalid: See `OnInvalid`.
        defaults, bounds, allowed: See there.
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
        """Twelve hexadecimal digits that tell policies apart; each pod is stamped with its policy's."""
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()[:12]
