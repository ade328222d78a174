"""Resolves a pod's annotations under the policy: its final spec, and everything needed to inject it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from podferry.contract.annotations import read_settings, settings_of
from podferry.contract.checkpoint_writer import is_read_only
from podferry.contract.code_version import UNKNOWN_CODE, CodeVersion, code_of_container
from podferry.contract.cross_validation import gang_problems
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.lineage import lineage_of
from podferry.contract.location_guards import UNGUARDED, LocationGuards
from podferry.contract.medium import ResolvedMedium, resolve_medium
from podferry.contract.pod_binding import made_for
from podferry.contract.pod_owner import (
    KFP,
    KFP_RUN_LABEL,
    PodOwner,
    kfp_inputs_of,
    pod_owner_of,
    variables_of,
)
from podferry.contract.spec import DatasetSpec, FerrySpec, Unpack
from podferry.contract.spec_json import encode_spec
from podferry.contract.variable_substitution import Variables
from podferry.webhook.injection.agent_address import LOOPBACK, agent_host
from podferry.webhook.injection.caches import allowed_caches, caches_of, declared_datasets
from podferry.webhook.injection.container_memory import memory_problems, shm_bytes
from podferry.webhook.injection.container_resources import AgentLimits, agent_limits
from podferry.webhook.injection.pod_conflicts import pod_conflicts
from podferry.webhook.injection.security_context import NOBODY, RunAs, run_as_of
from podferry.webhook.injection.shared_caches import share
from podferry.webhook.injection.template import CheckedTemplate, Template, template_of
from podferry.webhook.injection.trainer_env import agent_url, environment_problems, trainer_environment
from podferry.webhook.injection.volumes import has_shm, mount_problems, volume_problems
from podferry.webhook.pod.known_cache import KnownCache
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.pod.pod_identity import PodIdentity, identity_of
from podferry.webhook.pod.pod_json import Json, annotations_of, containers_of, labels_of
from podferry.webhook.pod.pod_lengths import length_problems
from podferry.webhook.pod.training_container import training_code_of, training_container_of
from podferry.webhook.policy.guardrails import (
    allowed_in,
    guardrail_problems,
    guards_of,
    image_problems,
    unknown_label_problems,
)
from podferry.webhook.policy.policy import AllowedLocations, Policy

SIZE_IN_KFP = 1 << 30
"""Bytes of one checkpoint, and of the outputs, of a KFP step, if neither its author nor the policy has a
size. Most checkpoints are smaller, and three of them fit on any node. A full volume is an error."""
T = TypeVar("T")


class ResolvedInjection(msgspec.Struct, frozen=True):
    """Everything needed to inject one pod.

    Attributes:
        spec: Its resolved spec: sizes, media, lineage and rank filled in.
        spec_json: The same, as JSON.
        trainer_index: Index of the training container.
        environment: Variables that the trainer gets, unless it has them.
        template: Its memory, volumes and mounts.
        run_as: User and group of the agent.
        limits: Of podferry's containers.
        run_id: KFP's run, or None outside KFP.
        identity: Of the trainer, for the agent.
        reasons: Why its datasets are in memory or on disk.
        agent_host: Where the agent listens.
        made_for: The pod's name, see `podferry.contract.pod_binding`.
        guards: What the agent has to check itself.
        code: What the training container runs.
        caches: The cache of each staged dataset that has one, by the dataset's name.
        sharing: The cache of each dataset that is mounted where its holders keep it.
    """

    spec: FerrySpec
    spec_json: str
    trainer_index: int
    environment: tuple[dict[str, str], ...]
    template: Template
    run_as: RunAs
    limits: AgentLimits
    run_id: str | None
    identity: PodIdentity = PodIdentity()
    reasons: tuple[str, ...] = ()
    made_for: str = "*"
    agent_host: str = LOOPBACK
    guards: LocationGuards = UNGUARDED
    code: CodeVersion = UNKNOWN_CODE
    caches: Mapping[str, KnownCache] = {}
    sharing: Mapping[str, KnownCache] = {}


class _ProblemCollector:
    """Collects the problems of steps that do not depend on each other."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def result_of(self, step: Callable[..., T], *arguments: Any) -> T | None:
        try:
            return step(*arguments)
        except InvalidSpec as error:
            self.add(error.problems)
            return None

    def add(self, problems: Iterable[Problem]) -> None:
        self.problems += [one for one in problems if one not in self.problems]


class _SpecParts(NamedTuple):
    """What follows from a resolved spec."""

    spec_json: bytes
    checked: CheckedTemplate
    environment: tuple[dict[str, str], ...]

    def problems(self, pod: Json, policy: Policy) -> Iterator[Problem]:
        yield from self.checked.problems
        yield from volume_problems(pod, self.checked.volume_names)
        yield from length_problems(pod, len(self.spec_json))
        if self.checked.template is not None:
            yield from memory_problems(self.checked.template.memory, policy)


def opted_in(pod: Json) -> bool:
    """Whether the pod has opted in and not out; its settings may still be invalid."""
    settings = settings_of(annotations_of(pod))
    return bool(settings) and settings.get("inject") != "false"


class _Request(NamedTuple):
    """What is resolved: a pod, under which policy, and which locations are allowed in its namespace."""

    pod: Json
    policy: Policy
    allowed: list[AllowedLocations]
    agent_host: str


def resolve_injection(
    pod: Json, namespace: Namespace, policy: Policy, request: str = ""
) -> ResolvedInjection:
    """Resolve everything needed to inject a pod that has opted in. Raises `InvalidSpec` with all problems."""
    found = _ProblemCollector()
    asked = _Request(pod, policy, allowed_in(namespace, policy), agent_host(pod, request))
    owner = found.result_of(pod_owner_of, pod, namespace.name)
    caches = allowed_caches(namespace, asked.allowed)
    resolved = found.result_of(resolve, pod, owner, policy, caches) if owner else None
    by_name = caches_of(resolved.spec, caches) if resolved else {}
    spec = share(resolved.spec, by_name) if resolved else None
    name = spec.container if spec else settings_of(annotations_of(pod)).get("container")
    index = found.result_of(training_container_of, pod, name, owner.kind if owner else KFP)
    container = containers_of(pod)[index] if index is not None else None
    # Without an agent, nothing of podferry runs.
    runs = container is not None and (spec is None or spec.needs_agent)
    run_as = found.result_of(run_as_of, pod, container, namespace.labels) if runs else NOBODY
    found.add(pod_conflicts(pod, policy) if spec is None or spec.needs_agent else ())
    found.add(unknown_label_problems(namespace, policy))
    parts = _checked_parts(spec, container, asked, found) if spec is not None else None
    template = parts and parts.checked.template
    if found.problems or not (owner and resolved and spec and run_as and parts and template) or index is None:
        raise InvalidSpec(*found.problems)
    return ResolvedInjection(
        spec=spec,
        spec_json=parts.spec_json.decode(),
        trainer_index=index,
        environment=parts.environment,
        template=template,
        run_as=run_as,
        run_id=labels_of(pod).get(KFP_RUN_LABEL) or owner.run_id or None,
        limits=agent_limits(pod, policy),
        identity=identity_of(pod, containers_of(pod)[index], spec),
        reasons=resolved.reasons,
        agent_host=asked.agent_host,
        made_for=made_for(pod),
        guards=guards_of(asked.allowed),
        code=code_of_container(containers_of(pod)[index]),
        caches={one.name: by_name[one.name] for one in spec.datasets if one.name in by_name},
        sharing={one.name: by_name[one.name] for one in spec.shared},
    )


def _checked_parts(
    spec: FerrySpec, container: Json | None, asked: _Request, found: _ProblemCollector
) -> _SpecParts:
    """What follows from the spec; adds to `found` what does not fit the pod, its place or the policy."""
    pod, policy, allowed, host = asked
    shm = found.result_of(_shm_bytes, container, spec, policy)
    parts = _parts(spec, shm or 0, agent_url(policy, host))
    found.add(parts.problems(pod, policy))
    found.add((*gang_problems(spec, spec.rank), *image_problems(spec, policy)))
    found.add(guardrail_problems(spec, allowed))
    if container is not None:
        found.add(mount_problems(pod, container, spec))
        found.add(environment_problems(container, parts.environment))
    return parts


def resolve(pod: Json, owner: PodOwner, policy: Policy, caches: Sequence[KnownCache] = ()) -> ResolvedMedium:
    """The spec with defaults, the datasets' media, lineage and rank filled in. Raises `InvalidSpec`."""
    settings = settings_of(annotations_of(pod))
    refers = any("$(" in text for text in settings.values())
    datasets = declared_datasets(policy.datasets, caches)
    spec = read_settings(settings, _variables(pod, owner, settings) if refers else None, datasets)
    defaults, replace = policy.defaults, msgspec.structs.replace
    checkpoints, outputs = spec.checkpoints, spec.outputs
    last = SIZE_IN_KFP if owner.kind == KFP else None
    if checkpoints:
        read_only = is_read_only(settings, owner)
        size = checkpoints.size or defaults.checkpoint_size or last
        checkpoints = replace(checkpoints, size=size, read_only=read_only)
    if outputs and outputs.size is None:
        outputs = replace(outputs, size=defaults.output_size or last)
    resolved = replace(
        spec,
        datasets=tuple(
            replace(one, size=defaults.dataset_size) if _needs_size(one) else one for one in spec.datasets
        ),
        checkpoints=checkpoints,
        outputs=outputs,
        lineage=spec.lineage or lineage_of(owner),
        rank=owner.rank,
    )
    return resolve_medium(resolved, policy.bounds.sidecar_memory)


def _variables(pod: Json, owner: PodOwner, settings: Mapping[str, str]) -> Variables:
    code = training_code_of(pod, settings.get("container"), owner.kind)
    return variables_of(owner, kfp_inputs_of(pod), code=code)


def _parts(spec: FerrySpec, shm: int, url: str) -> _SpecParts:
    spec_json = encode_spec(spec)
    checked = template_of(spec, shm, len(spec_json))
    return _SpecParts(spec_json, checked, tuple(trainer_environment(spec, url)))


def _needs_size(dataset: DatasetSpec) -> bool:
    packed = dataset.unpack is Unpack.ALWAYS
    return dataset.size is None and (packed or dataset.parsed.bytes is None)


def _shm_bytes(container: Json | None, spec: FerrySpec, policy: Policy) -> int:
    """Bytes of the volume for the trainer's `/dev/shm`; 0 if it has one there."""
    if container is None or has_shm(container):
        return 0
    return shm_bytes(container, spec.shm_size, policy)
