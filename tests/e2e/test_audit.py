"""`enforcement: audit` for the whole cluster: pods are stamped, and otherwise as their authors wrote them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.process import wait_until
from tests.e2e import install
from tests.e2e.manifests import Object, container, job, pod, podferry_annotations
from tests.e2e.namespace import Namespace
from tests.e2e.site import Site
from tests.e2e.test_policy import policy_of

MISSPELLED = podferry_annotations(datset="x")
MADE_BY_THE_SERVER = ("uid", "creationTimestamp", "resourceVersion", "managedFields")


@pytest.fixture(scope="module")
def created(site: Site) -> Iterator[Namespace]:
    """A namespace of the rule `everything`."""
    with site.namespace({"podferry.test/rules": "everything"}) as namespace:
        yield namespace


@pytest.fixture(scope="module")
def plain(site: Site, created: Namespace) -> list[dict[str, Any]]:
    """The pods without podferry."""
    with install.not_registered(site.cluster):
        return [dry_run(created, each) for each in pods(created)]


@pytest.fixture(scope="module")
def audited(site: Site, created: Namespace, plain: list[dict[str, Any]]) -> Iterator[Namespace]:
    """The namespace, in a cluster that is only audited."""
    (probe, *_) = pods(created)
    with policy_of(site, enforcement="audit"):
        # Every replica: each answer may be another's.
        wait_until(
            "the policy to audit", lambda: {status(created, probe) for _ in range(6)} == {"audited"}, 120
        )
        yield created
    wait_until("pods to be injected again", lambda: install.injects(site.cluster), 120, interval=0.5)


def pods(namespace: Namespace) -> list[Object]:
    """One that opts in, an invalid one, and one of the rule."""
    one = container(command=["true"])
    opted_in = pod("opted-in", one, annotations=namespace.training_annotations())
    return [opted_in, pod("invalid", one, annotations=MISSPELLED), pod("by-rule", one)]


def status(namespace: Namespace, manifest: Object) -> str:
    made = dry_run(namespace, manifest)
    return str(made["metadata"].get("annotations", {}).get("podferry.io/status", ""))


def dry_run(namespace: Namespace, manifest: Object) -> dict[str, Any]:
    made = namespace.dry_run(manifest)
    for name in MADE_BY_THE_SERVER:
        made["metadata"].pop(name, None)
    return made


def test_pods_are_only_stamped(plain: list[dict[str, Any]], audited: Namespace) -> None:
    """Those that opt in, valid or not, and those of a rule."""
    made = [dry_run(audited, each) for each in pods(audited)]
    originals = pods(audited)
    stamps = [without_stamps(each, original) for each, original in zip(made, originals, strict=True)]
    assert made == plain
    assert [each["status"] for each in stamps] == ["audited"] * 3
    reasons = [each["reason"] for each in stamps]
    assert reasons[::2] == ["would be injected"] * 2
    assert reasons[1].startswith("would be denied: podferry.io/datset: unknown annotation")
    assert stamps[2]["rule"] == "everything"


def without_stamps(made: dict[str, Any], original: Object) -> dict[str, str]:
    """Remove what was added to the annotations, and return it."""
    kept = original["metadata"]["annotations"]
    found = made["metadata"].get("annotations", {})
    added = {name.removeprefix("podferry.io/"): found.pop(name) for name in set(found) - set(kept)}
    if not found:
        made["metadata"].pop("annotations", None)
    return added


def test_pods_run_and_controllers_create_them(audited: Namespace) -> None:
    """An invalid Job is applied, too, and its pod runs."""
    invalid = job("invalid", container(command=["true"]), annotations=MISSPELLED)
    answer = audited.start(invalid)
    assert "denied" not in answer.errors
    outcome = audited.outcome(invalid)
    assert outcome.succeeded
    assert [*outcome.pod.containers] == ["trainer"]
    assert outcome.pod.object["metadata"]["annotations"]["podferry.io/status"] == "audited"
