from collections.abc import Callable

import msgspec
import pytest

from podferry.contract.location_guards import UNGUARDED, LocationGuards
from podferry.contract.spec import FerrySpec
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.policy.guardrails import (
    allowed_in,
    guardrail_problems,
    guards_of,
    unknown_label_problems,
)
from podferry.webhook.policy.policy import AllowedLocations, Guardrail, PodSelector, Policy

TEAM = Namespace("team-a", {"tier": "trial"})


def guarded(policy: Policy, *guardrails: tuple[PodSelector, AllowedLocations]) -> Policy:
    return msgspec.structs.replace(policy, guardrails=tuple(Guardrail(*one) for one in guardrails))


def problems(spec: FerrySpec, policy: Policy, namespace: Namespace = TEAM) -> list[str]:
    found = guardrail_problems(spec, allowed_in(namespace, policy))
    return [str(problem) for problem in (*unknown_label_problems(namespace, policy), *found)]


@pytest.fixture
def own_prefix(policy: Policy) -> Policy:
    """Tenants write under their own prefix."""
    own = AllowedLocations(destinations=("s3://results/$(namespace)/",))
    return guarded(policy, (PodSelector(namespaces=("team-*",)), own))


@pytest.mark.parametrize(
    ("destination", "allowed"),
    [
        ("s3://results/team-a", True),
        ("s3://results/team-a/digits", True),
        ("s3://results/team-ab", False),
        ("s3://results/team-b", False),
        ("s3://results/team-a/../team-b", False),
        ("s3://other/team-a", False),
    ],
)
def test_a_tenant_writes_under_its_own_prefix(
    spec: Callable[..., FerrySpec], own_prefix: Policy, destination: str, allowed: bool
) -> None:
    for key in ("checkpoints", "outputs"):
        found = problems(spec(**{key: destination}), own_prefix)
        assert (found == []) is allowed
        assert all("Use one of the allowed destinations: s3://results/team-a/" in one for one in found)
        assert problems(spec(**{key: destination}), own_prefix, Namespace("prod")) == []


def test_guardrails_only_narrow(spec: Callable[..., FerrySpec], policy: Policy) -> None:
    narrow = msgspec.structs.replace(policy, allowed=AllowedLocations(sources=("s3://datasets/*",)))
    wide = guarded(narrow, (PodSelector(namespaces=("*",)), AllowedLocations(sources=("*",))))
    (problem,) = problems(spec(dataset="s3://private/x", dataset_size="1Gi"), wide)
    assert "Use one of the allowed sources: s3://datasets/*" in problem


def test_by_label(spec: Callable[..., FerrySpec], policy: Policy) -> None:
    trial = guarded(policy, (PodSelector(namespace_labels={"tier": "trial"}), AllowedLocations(sources=())))
    written = spec(dataset="s3://private/x", dataset_size="1Gi")
    assert len(problems(written, trial)) == 1
    assert problems(written, trial, Namespace("team-a", {"tier": "paid"})) == []


def test_labels_that_cannot_be_read_allow_nothing(spec: Callable[..., FerrySpec], policy: Policy) -> None:
    unknown = Namespace("team-a", labels_known=False)
    written = spec(checkpoints="s3://results/x")
    by_label = guarded(policy, (PodSelector(namespace_labels={"tier": "trial"}), AllowedLocations()))
    by_name = guarded(policy, (PodSelector(namespaces=("x",)), AllowedLocations()))
    assert ["cannot be read" in one for one in problems(written, by_label, unknown)] == [True]
    assert problems(written, by_name, unknown) == problems(written, policy, unknown) == []


@pytest.mark.parametrize(
    "settings",
    [
        {"dataset": "http://169.254.169.254/latest/meta-data", "dataset_size": "1Mi"},
        {"checkpoints": "s3://results", "restore": "http://2852039166/x"},
        {"checkpoints": "s3://results", "endpoint": "http://metadata.google.internal"},
        {"outputs": "s3://results", "outputs_endpoint": "http://[fd00:ec2::254]:80"},
        {"dataset": "webdav://169.254.169.254/latest", "dataset_size": "1Mi"},
        {"dataset": "webhdfs://bob@0xA9FEA9FE:80/latest", "dataset_size": "1Mi"},
        {"outputs": "sftp://metadata.google.internal/x"},
        {"checkpoints": "third+party://[fe80::1]/x"},
    ],
)
def test_metadata_services_are_never_allowed(
    spec: Callable[..., FerrySpec], policy: Policy, settings: dict[str, str]
) -> None:
    (problem,) = problems(spec(**settings), policy)
    assert "a metadata service gives out the node's credentials" in problem


def test_buckets_may_have_the_name_of_a_metadata_service(
    spec: Callable[..., FerrySpec], policy: Policy
) -> None:
    assert (
        problems(spec(dataset="s3://metadata/x", dataset_size="1Mi", outputs="az://metadata/x"), policy) == []
    )


def test_what_the_agent_is_told(policy: Policy) -> None:
    assert guards_of(allowed_in(TEAM, policy)) == UNGUARDED
    both = guarded(
        msgspec.structs.replace(
            policy, allowed=AllowedLocations(sources=("s3://d/*",), endpoints=("https://*.internal",))
        ),
        (PodSelector(namespaces=("team-*",)), AllowedLocations(endpoints=("https://$(namespace).internal",))),
        (PodSelector(namespaces=("prod",)), AllowedLocations(endpoints=())),
    )
    endpoints = (("https://*.internal",), ("https://team-a.internal",))
    assert guards_of(allowed_in(TEAM, both)) == LocationGuards(endpoints, (("s3://d/*",),))
    assert len(allowed_in(TEAM, both)) == 2
