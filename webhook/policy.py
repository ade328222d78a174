"""The injection policy: what the cluster's administrator decides, as one YAML document.

    apiVersion: podferry.io/v1alpha1
    kind: InjectionPolicy
    image: registry.example.com/podferry:0.1.0

`image` alone is required; all other keys stand in `KEYS`, each with its reading and its default. All that is
wrong is said at once, unknown keys with a suggestion.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec
import yaml

from podferry.contract.annotations import resolve_dataset
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.quantity import parse_bytes, parse_quantity, parse_seconds
from podferry.contract.suggest import did_you_mean

API_VERSION = "podferry.io/v1alpha1"
KIND = "InjectionPolicy"
GIB, MIB = 1024**3, 1024**2
PULL_POLICIES = ("Always", "IfNotPresent", "Never")


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


Parser = Callable[[Any], Any]


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidSpec.of("no text", repr(value), "Write a text")
    return value.strip()


def _plain(value: Any) -> str:
    """Quantities and durations may be written as numbers."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidSpec.of("neither a text nor a number", repr(value), "Write a value such as 10Gi or 90s")
    return str(value)


def _bytes(value: Any) -> int:
    return parse_bytes(_plain(value))


def _seconds(value: Any) -> int:
    return parse_seconds(_plain(value))


def _cpu(value: Any) -> str:
    text = _plain(value)
    if parse_quantity(text) <= 0:
        raise InvalidSpec.of("CPU must be above zero", repr(text), "Write 100m")
    return text


def _port(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1024 <= value <= 65535:
        raise InvalidSpec.of("no port that a plain user may listen on", repr(value), "Write 1024 to 65535")
    return value


def _one_of(words: tuple[str, ...]) -> Parser:
    def parse(value: Any) -> str:
        if value not in words:
            listed = f"Write one of {', '.join(words)}"
            raise InvalidSpec.of("unknown word", repr(value), did_you_mean(str(value), words, listed))
        return str(value)

    return parse


def _globs(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise InvalidSpec.of("no list", repr(value), "Write a list of globs such as s3://datasets/*")
    return tuple(_text(item) for item in value)


def _datasets(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise InvalidSpec.of("no mapping", repr(value), "Write NAME: REFERENCE")
    return {_text(name): str(resolve_dataset(_text(text))) for name, text in value.items()}


Table = Mapping[str, "Parser | Table"]
KEYS: Table = {
    "apiVersion": _one_of((API_VERSION,)),
    "kind": _one_of((KIND,)),
    "image": _text,
    "imagePullPolicy": _one_of(PULL_POLICIES),
    "agentPort": _port,
    "onInvalid": _one_of(tuple(OnInvalid)),
    "defaults": {
        "datasetSize": _bytes,
        "checkpointSize": _bytes,
        "outputSize": _bytes,
        "shmSize": _bytes,
        "grace": _seconds,
        "uploadRate": _bytes,
        "sidecarCpu": _cpu,
    },
    "bounds": {"sidecarMemory": _bytes, "trainerRaise": _bytes, "grace": _seconds},
    "allowed": {"sources": _globs, "destinations": _globs, "endpoints": _globs},
    "datasets": _datasets,
}
"""Every key of the document and how its value is read."""
REQUIRED = ("apiVersion", "kind", "image")


def read_policy(text: str) -> Policy:
    """Parse a policy.

    Raises:
        InvalidSpec: Everything that is wrong with it.
    """
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidSpec.of("the policy is no YAML", " ".join(str(error).split()), "Correct it") from error
    if not isinstance(document, dict):
        raise InvalidSpec.of("the policy is no mapping", repr(document), f"Write kind: {KIND} and its keys")
    problems = [
        Problem(f"{name} is missing in the policy", "", f"Add {name}")
        for name in REQUIRED
        if name not in document
    ]
    values = _read(document, KEYS, "", problems)
    problems += _contradictions(values)
    InvalidSpec.raise_any(problems)
    return msgspec.convert({name: values[name] for name in values if name not in REQUIRED[:2]}, Policy)


def _read(document: Any, table: Table, above: str, problems: list[Problem]) -> dict[str, Any]:
    """The values that could be read, by their names in Python; what could not goes to `problems`."""
    if not isinstance(document, dict):
        problems.append(
            Problem(f"{above.rstrip('.')}: no mapping", repr(document), f"Keys: {', '.join(table)}")
        )
        return {}
    values: dict[str, Any] = {}
    for name, raw in document.items():
        parser = table.get(name)
        if parser is None:
            remedy = did_you_mean(str(name), table, f"Known: {', '.join(table)}")
            problems.append(Problem(f"{above}{name}: unknown key in the policy", "", remedy))
        elif isinstance(parser, Mapping):
            values[_snake(name)] = _read(raw, parser, f"{above}{name}.", problems)
        else:
            try:
                values[_snake(name)] = parser(raw)
            except InvalidSpec as error:
                problems += [
                    Problem(f"{above}{name}: {one.what}", one.measured, one.remedy) for one in error.problems
                ]
    return values


def _contradictions(values: Mapping[str, Any]) -> Iterator[Problem]:
    grace = values.get("defaults", {}).get("grace", Defaults().grace)
    bound = values.get("bounds", {}).get("grace", Bounds().grace)
    if grace > bound:
        yield Problem("defaults.grace is above bounds.grace", f"{grace} s and {bound} s", "Lower the default")


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
