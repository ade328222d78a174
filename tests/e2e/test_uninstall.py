"""podferry is removed from a cluster where it runs: docs/operations.md."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterator

import pytest

from tests.cluster.process import patient, wait_until
from tests.e2e import install
from tests.e2e.figures import Figures
from tests.e2e.manifests import container, job, pod, podferry_annotations
from tests.e2e.namespace import Answer, Namespace
from tests.e2e.site import Site
from tests.e2e.trainers import COMMON, assert_unharmed, release_trainer

PAGE = (install.ROOT / "docs" / "operations.md").read_text()
TRAINS = f"""{COMMON}
write(1, 1000)
wait_for("uninstalled")
write(2, 1000)
"""


@pytest.fixture
def removable(site: Site) -> Iterator[Site]:
    """The site; podferry is installed again at the end."""
    try:
        yield site
    finally:
        wait_until("the namespace to be gone", lambda: not terminating(site), 90, interval=0.5)
        site.cluster.kubectl("apply", "-k", str(install.OVERLAY))
        install.await_webhook(site.cluster)


def terminating(site: Site) -> bool:
    found = site.cluster.find("namespace", install.NAMESPACE)
    return found is not None and found["status"]["phase"] == "Terminating"


def commands(section: str) -> list[str]:
    """The commands of a section of the page."""
    text = PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0]
    (block,) = re.findall("```sh\n(.*?)```", text, re.DOTALL)
    return block.replace("\\\n", "").splitlines()


def run(site: Site, command: str) -> None:
    """One command of the page, for the tests' overlay."""
    program, *words = shlex.split(command.replace("overlays/mine", str(install.OVERLAY)))
    assert program == "kubectl"
    site.cluster.kubectl(*words, timeout=patient(120))


def is_plain(answer: Answer) -> bool:
    """Whether a pod would start without podferry."""
    return answer.code == 0 and "podferry-gate" not in answer.output


def remnants(site: Site) -> list[str]:
    """Everything in the cluster that was podferry's."""
    kinds = site.cluster.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    listed = ",".join(kind for kind in kinds if not kind.startswith("events"))
    found = site.cluster.kubectl("get", listed, "-A", "-o", "name").split()
    ours = site.cluster.kubectl("get", listed, "-A", "-o", "name", "-lapp.kubernetes.io/part-of=podferry")
    return [*ours.split(), *(one for one in found if "podferry" in one)]


def test_the_commands_of_the_page(removable: Site, namespace: Namespace, figures: Figures) -> None:
    """A running pod keeps its agent, pods are created without podferry, and nothing is left."""
    training = pod("training", container(script=TRAINS), annotations=namespace.training_annotations())
    again = {**training, "metadata": {**training["metadata"], "name": "again"}}
    invalid = job("invalid", container(command=["true"]), annotations=podferry_annotations(datset="x"))
    unregister, remove = commands("Uninstall")
    namespace.start(training)
    namespace.until_logged(training, "trainer", '"wrote": 1')
    started = time.monotonic()
    run(removable, unregister)
    wait_until("pods to start without podferry", lambda: is_plain(namespace.try_create(again)), 30)
    figures.record("uninstall", {"refused, s": round(time.monotonic() - started, 1)})
    assert namespace.try_create(invalid).code == 0
    run(removable, remove)
    assert remnants(removable) == []
    assert is_plain(namespace.try_create(again))
    release_trainer(namespace, "training", "uninstalled")
    assert_unharmed(namespace.outcome(training))
    lineage = namespace.lineage("training", "pod")
    assert [one.step for one in namespace.bucket.commits(lineage)] == [1, 2]


def test_the_namespace_alone(removable: Site, figures: Figures) -> None:
    """Only pods that opt in are refused, at once and with the reason, until the registrations are gone."""
    with removable.namespace({"podferry.test/rules": "everything"}) as namespace:
        by_rule = pod("by-rule", container(command=["true"]))
        opted_in = pod("opted-in", container(command=["true"]), annotations=namespace.training_annotations())
        removable.cluster.kubectl("delete", "namespace", install.NAMESPACE, timeout=patient(90))
        seconds = {}
        for one, is_admitted in ((by_rule, True), (opted_in, False)):
            started = time.monotonic()
            answer = namespace.try_create(one)
            seconds[f"{one['metadata']['name']}, s"] = round(time.monotonic() - started, 1)
            assert is_plain(answer) == is_admitted, answer
        figures.record("the namespace alone is deleted", seconds)
        assert 'service "podferry-webhook" not found' in answer.errors
        for command in commands("Uninstall"):
            run(removable, command)
        wait_until("pods to start without podferry", lambda: is_plain(namespace.try_create(opted_in)), 30)
    assert remnants(removable) == []
