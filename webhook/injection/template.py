"""What a pod's settings determine, apart from its identity: computed once for all pods of a template.

Thousands of pods have the settings of a few templates. They differ in names, lineage and rank.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.memory_sum import MemorySum, memory_sum
from podferry.contract.pod_locations import directory_problems, location_problems
from podferry.contract.spec import FerrySpec
from podferry.webhook.injection.volumes import sidecar_mounts, trainer_mounts, volume_names, volumes

MAX_CACHED_BYTES = 4096
"""Of a spec as JSON; larger ones would fill the memory."""


class Template(msgspec.Struct, frozen=True):
    """What the pods of a template have in common; nobody may change what is in it.

    Attributes:
        memory: Of volumes and agent.
        volumes: That the pods get.
        sidecar_mounts, trainer_mounts: Of agent and trainer.
    """

    memory: MemorySum
    volumes: tuple[dict[str, Any], ...]
    sidecar_mounts: tuple[dict[str, Any], ...]
    trainer_mounts: tuple[dict[str, Any], ...]


class CheckedTemplate(msgspec.Struct, frozen=True):
    """A template, None if it is invalid.

    Attributes:
        template: The template.
        problems: Unknown sizes, and locations and directories that no pod can use.
        volume_names: Names of the volumes that podferry needs.
    """

    template: Template | None
    problems: tuple[Problem, ...]
    volume_names: frozenset[str]


def template_of(spec: FerrySpec, shm: int, size: int) -> CheckedTemplate:
    """The template of a resolved spec.

    Args:
        spec: The spec of a pod.
        shm: Bytes of the volume for the trainer's `/dev/shm`; 0 for none.
        size: Bytes of the spec as JSON.
    """
    common = msgspec.structs.replace(spec, lineage=None, rank=None, shm_size=shm or None)
    return (_cached if size <= MAX_CACHED_BYTES else _checked)(common)


def _checked(spec: FerrySpec) -> CheckedTemplate:
    problems = [*location_problems(spec), *directory_problems(spec)]
    template = None
    try:
        template = _template(spec, memory_sum(spec))
    except InvalidSpec as error:
        problems += error.problems
    return CheckedTemplate(template, tuple(problems), frozenset(volume_names(spec)))


_cached = lru_cache(maxsize=128)(_checked)


def _template(spec: FerrySpec, memory: MemorySum) -> Template:
    with_shm = spec.shm_size is not None
    return Template(
        memory,
        tuple(volumes(spec, memory, with_shm=with_shm)),
        tuple(sidecar_mounts(spec)) if spec.needs_agent else (),
        tuple(trainer_mounts(spec, with_shm=with_shm)),
    )
