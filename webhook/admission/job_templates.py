"""Validates the pod templates of workloads when they are applied, before their pods would be refused.

The kinds and their templates are in `podferry.contract.pod_templates`. Each template is judged as the first
pod that its controller would make of it, as far as that is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from podferry.contract.annotations import settings_of, value_problems
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.pod_owner import pod_owner_of, variables_of
from podferry.contract.pod_templates import PodTemplate, pod_templates_of
from podferry.contract.spec import PREFIX
from podferry.contract.variable_substitution import variables_in
from podferry.webhook.admission.checkpoint_writers import TemplateSpec, writer_warnings
from podferry.webhook.admission.decide import NOT_DONE, decide
from podferry.webhook.injection.caches import allowed_caches, declared_datasets
from podferry.webhook.injection.resolve import opted_in, resolve
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.pod.pod_json import Json, annotations_of
from podferry.webhook.pod.stamp import UNSIGNED, Signer
from podferry.webhook.pod.training_container import training_code_of
from podferry.webhook.policy.guardrails import allowed_in
from podferry.webhook.policy.policy import Enforcement, Policy

TEMPLATE_SUFFIX = re.compile(r"(\.template\.spec)?\.template$")
NEW_CLUSTERS = (
    "each attempt of a RayJob may run in a cluster with another name, and then starts from the beginning; "
    f"set {PREFIX}lineage"
)
"""KubeRay 1.4 and later: the name no longer shows which RayJob a cluster is for."""


class TemplateReview(msgspec.Struct, frozen=True):
    """The review of a workload.

    Attributes:
        problems: Why its pods would be refused.
        warnings: What will not work as its author may think.
    """

    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()


def review_templates(
    workload: Json, namespace: Namespace, policy: Policy, signer: Signer = UNSIGNED
) -> TemplateReview:
    """What is wrong with the pods of a workload; nothing for those that have not opted in."""
    if policy.enforcement is Enforcement.DISABLED:
        return TemplateReview()
    templates = pod_templates_of(workload)
    problems = [one for each in templates for one in _problems(each, namespace, policy, signer)]
    if problems:
        return TemplateReview(tuple(dict.fromkeys(problems)))
    opted = [one for one in templates if one.complete and opted_in(one.pod)]
    writers = writer_warnings(list(_specs(opted, namespace, policy)))
    return TemplateReview(warnings=(*_new_clusters(workload, opted), *writers, *_shared_outputs(opted)))


def _problems(
    template: PodTemplate, namespace: Namespace, policy: Policy, signer: Signer
) -> Iterator[Problem]:
    if template.complete:
        decision = decide(template.pod, namespace, policy, signer)
        found: Sequence[Problem] = decision.problems if decision.outcome in NOT_DONE else ()
    elif policy.enforcement is not Enforcement.INJECT:
        found = ()
    else:
        annotations = annotations_of(template.pod)
        owner = pod_owner_of(template.pod, namespace.name)
        code = training_code_of(template.pod, settings_of(annotations).get("container"), owner.kind)
        variables = variables_of(owner, code=code)
        caches = allowed_caches(namespace, allowed_in(namespace, policy))
        found = value_problems(annotations, variables, declared_datasets(policy.datasets, caches))
    title = _title(template)
    for problem in found:
        yield msgspec.structs.replace(problem, what=f"{title}: {problem.what}") if title else problem


def _title(template: PodTemplate) -> str:
    """What people call the template: `spec.pytorchReplicaSpecs.Worker`; nothing if it is a Job's only one."""
    return "" if template.path == "spec.template" else TEMPLATE_SUFFIX.sub("", template.path)


def _specs(templates: Iterable[PodTemplate], namespace: Namespace, policy: Policy) -> Iterator[TemplateSpec]:
    caches = allowed_caches(namespace, allowed_in(namespace, policy))
    for template in templates:
        owner = pod_owner_of(template.pod, namespace.name)
        try:
            spec = resolve(template.pod, owner, policy, caches).spec
        except InvalidSpec:
            continue  # it is invalid without what a rule of the policy adds
        if spec.checkpoints is not None:
            yield TemplateSpec(_title(template) or template.path, spec, template.pods)


def _new_clusters(workload: Json, templates: Iterable[PodTemplate]) -> Iterator[str]:
    settings = [settings_of(annotations_of(one.pod)) for one in templates]
    unnamed = any("checkpoints" in one and "lineage" not in one for one in settings)
    if workload.get("kind") == "RayJob" and unnamed:
        yield NEW_CLUSTERS


def _shared_outputs(templates: Iterable[PodTemplate]) -> Iterator[str]:
    key = f"{PREFIX}outputs"
    for template in templates:
        place = settings_of(annotations_of(template.pod)).get("outputs")
        if place is not None and (template.pods or 1) > 1 and "rank" not in variables_in(place):
            title = _title(template) or template.path
            what = f"{title}: {template.pods} pods upload to one location, {key}"
            yield f"{what}: files of the same name overwrite each other; add $(rank)"
