"""Guardrails: which locations the policy lets pods read and write.

A location must be allowed by the policy and by each of its guardrails for the pod's namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from podferry.contract.errors import Problem
from podferry.contract.location_globs import ANY, allows
from podferry.contract.location_guards import Guards, LocationGuards, location_problem
from podferry.contract.spec import PREFIX, DatasetMode, FerrySpec
from podferry.contract.uri import Uri, parse_uri
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.policy.policy import AllowedLocations, Policy
from podferry.webhook.policy.policy_values import NAMESPACE_VARIABLE

Location = tuple[str, str, str]
"""(annotation, location, field of `AllowedLocations`)."""


def unknown_label_problems(namespace: Namespace, policy: Policy) -> Iterator[Problem]:
    """Guardrails that may apply to the namespace, whose labels are unknown."""
    if not namespace.labels_known and any(one.match.namespace_labels for one in policy.guardrails):
        what = "the labels of the namespace, on which the policy's guardrails depend, cannot be read"
        yield Problem(what, namespace.name, "Try again; then check that the webhook reaches the API server")


def guardrail_problems(spec: FerrySpec, guards: Sequence[AllowedLocations]) -> Iterator[Problem]:
    """Every location that is not allowed by all of these, see `allowed_in`."""
    for key, location, kind in _locations(spec):
        if problem := location_problem(f"{PREFIX}{key}", location):
            yield problem
            continue
        for globs in (getattr(allowed, kind) for allowed in guards):
            if not allows(globs, location):
                yield _outside(key, location, globs, kind)
                break


def image_problems(spec: FerrySpec, policy: Policy) -> Iterator[Problem]:
    """Datasets in images, which API servers without image volumes drop: the trainer would see nothing."""
    for dataset in spec.mounted if not policy.image_volumes else ():
        if dataset.mode is DatasetMode.IMAGE:
            what = f"{PREFIX}{dataset.key('mode')}: the policy does not allow image volumes"
            remedy = "Copy the dataset from a store; if the cluster has image volumes, its administrator can "
            yield Problem(what, str(dataset.parsed.uri), f"{remedy}set imageVolumes: true")


def allowed_in(namespace: Namespace, policy: Policy) -> list[AllowedLocations]:
    """What applies to a namespace, all of which must allow a location; its name is filled in."""
    of_namespace = (
        one.allowed
        for one in policy.guardrails
        if namespace.is_named(one.match.namespaces) and namespace.has_labels(one.match.namespace_labels)
    )
    return [_filled_in(allowed, namespace.name) for allowed in (policy.allowed, *of_namespace)]


def guards_of(allowed: Sequence[AllowedLocations]) -> LocationGuards:
    """What the agent has to check itself: endpoints in Secrets, and the data that manifests name."""
    return LocationGuards(
        _restricting(one.endpoints for one in allowed), _restricting(one.sources for one in allowed)
    )


def _restricting(lists: Iterable[tuple[str, ...]]) -> Guards:
    return tuple(globs for globs in lists if ANY not in globs)


def _filled_in(allowed: AllowedLocations, namespace: str) -> AllowedLocations:
    def globs(texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(text.replace(NAMESPACE_VARIABLE, namespace) for text in texts)

    return AllowedLocations(globs(allowed.sources), globs(allowed.destinations), globs(allowed.endpoints))


def _locations(spec: FerrySpec) -> Iterator[Location]:
    for dataset in spec.all_datasets:
        yield dataset.key("dataset"), _plain(dataset.origin.uri), "sources"
    if spec.checkpoints:
        yield "checkpoints", _plain(spec.checkpoints.parsed), "destinations"
        if "://" in spec.checkpoints.restore:
            yield "restore", _plain(parse_uri(spec.checkpoints.restore)), "sources"
    if spec.outputs:
        yield "outputs", _plain(spec.outputs.parsed), "destinations"
    sections = (
        *((one.key("dataset-endpoint"), one) for one in spec.datasets),
        ("checkpoints-endpoint", spec.checkpoints),
        ("outputs-endpoint", spec.outputs),
    )
    endpoints = {part.access.endpoint: key for key, part in sections if part and part.access.endpoint}
    for endpoint, key in endpoints.items():
        yield key, str(endpoint), "endpoints"


def _outside(key: str, location: str, patterns: Sequence[str], kind: str) -> Problem:
    listed = ", ".join(patterns) or "none"
    remedy = f"Use one of the allowed {kind}: {listed}"
    return Problem(f"{PREFIX}{key}: the policy does not allow this location", location, remedy)


def _plain(uri: Uri) -> str:
    """The URI without options, which only control access."""
    return f"{uri.scheme}://{uri.bucket}/{uri.key}"
