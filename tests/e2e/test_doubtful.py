"""A pod ends in the middle of a save of several files: durable, doubtful, and not resumed from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import pytest

from podferry.contract.destination.agent_notes import NOTES
from podferry.contract.destination.commit import Commit, DoubtKind
from podferry.webhook.pod.pod_json import GATE, SIDECAR
from tests.e2e.manifests import TRAINER, container, pod
from tests.e2e.namespace import Namespace
from tests.e2e.outcome import Outcome
from tests.e2e.scenarios import Scenario, Scenarios, start_scenarios
from tests.e2e.site import Site
from tests.e2e.trainers import COMMON, assert_unharmed

SAVES_IN_PARTS = f"""{COMMON}
import zipfile
signal.signal(signal.SIGTERM, lambda *_: os._exit(143))

def save(step, *parts):
    folder = checkpoints / f"step-{{step}}"
    folder.mkdir()
    for part in parts:
        with zipfile.ZipFile(folder / part, "w") as archive:
            archive.writestr("data", f"{{part}} of {{step}} " * 10_000)

for step in range(1, SAVES):
    save(step, "model.pt", "optimizer.pt")
save(SAVES, "model.pt")
say(torn=SAVES)
time.sleep(120)
"""
"""Writes archives as torch does, and stops between the two files of its last save."""
LOOKS = f"""{COMMON}
say(files=sorted(str(path.relative_to(checkpoints)) for path in checkpoints.rglob("*.pt")))
found = status()
say(restored=found["restored"] and found["restored"]["name"], passed_over=found["passed_over"])
"""


NO_OPTIMIZER = r"doubtful: (step-[12])/optimizer\.pt of \1 has no counterpart"


class Result(NamedTuple):
    """The result of a scenario.

    Attributes:
        commits: Of its lineage, once the pod is gone.
        next: The pod that was created while this one ended.
        latest: A pod after it that asks for the newest, sure or doubtful; None if there was none.
    """

    commits: list[Commit]
    next: Outcome
    latest: Outcome | None = None


def cut_off(name: str, saves: int, namespace: Namespace) -> Result:
    """Delete a pod in the middle of its last save."""
    annotations = namespace.training_annotations(lineage=name)
    script = SAVES_IN_PARTS.replace("SAVES", str(saves))
    training = pod(name, container(script=script), annotations=annotations)
    later = pod(f"{name}-next", container(script=LOOKS), annotations=annotations)
    namespace.start(training)
    namespace.until_logged(training, TRAINER, "torn", timeout=120)
    namespace.kubectl("delete", "pod", name, "--wait=false")
    notes = f"checkpoints/{name}/{NOTES}/"
    namespace.until("the drain to begin", lambda: namespace.bucket.objects(notes), 60)
    outcome = namespace.run(later, 120)
    return Result(namespace.bucket.commits(name), outcome)


def first_save(namespace: Namespace) -> Result:
    result = cut_off("first", 1, namespace)
    annotations = namespace.training_annotations(lineage="first", restore="latest")
    latest = pod("first-latest", container(script=LOOKS), annotations=annotations)
    return result._replace(latest=namespace.run(latest, 120))


SCENARIOS: dict[str, Scenario[Result]] = {"first": first_save, "third": partial(cut_off, "third", 3)}


@pytest.fixture(scope="module")
def results(site: Site) -> Iterator[Scenarios[Result]]:
    with start_scenarios(site, SCENARIOS) as found:
        yield found


def facts(outcome: Outcome) -> dict[str, Any]:
    """All facts that a trainer printed."""
    assert_unharmed(outcome)
    return {
        name: fact for line in outcome[TRAINER].log.splitlines() for name, fact in json.loads(line).items()
    }


def warning(outcome: Outcome, event: str) -> dict[str, Any]:
    """The one entry about an event in the agent's log."""
    lines = (json.loads(line) for line in outcome[SIDECAR].log.splitlines() if line.startswith("{"))
    [found] = [line for line in lines if line["event"] == event]
    return found


def test_a_torn_checkpoint_is_durable_and_doubtful(results: Scenarios[Result]) -> None:
    commits = results["third"].commits
    assert [(one.step, one.is_sure) for one in commits] == [(1, True), (2, True), (3, False)]
    assert [file.name for file in commits[-1].files] == ["step-3/model.pt"]
    assert DoubtKind.FEWER in {doubt.kind for doubt in commits[-1].doubts}


def test_the_next_pod_resumes_from_the_sure_one_before_and_names_the_doubtful_one(
    results: Scenarios[Result],
) -> None:
    outcome = results["third"].next
    found = facts(outcome)
    assert found["files"] == ["step-2/model.pt", "step-2/optimizer.pt"]
    assert found["restored"] == "step-2"
    assert [(one["name"], one["sequence"]) for one in found["passed_over"]] == [("step-3", 3)]
    # Whichever of the two is the newest sure one by then.
    reason = re.match(NO_OPTIMIZER, found["passed_over"][0]["reason"])
    assert reason is not None
    said = f"resuming from step-2 (commit 2); newer ones were passed over: step-3 ({reason[0]}"
    assert said in outcome[GATE].log
    logged = warning(outcome, "newer checkpoints were passed over")
    assert (logged["level"], [*logged["passed_over"]]) == ("warning", ["step-3"])


def test_training_starts_from_the_beginning_and_says_so_if_none_is_sure(results: Scenarios[Result]) -> None:
    result = results["first"]
    assert [(one.step, one.is_sure) for one in result.commits] == [(1, False)]
    found = facts(result.next)
    assert (found["files"], found["restored"]) == ([], None)
    assert [one["name"] for one in found["passed_over"]] == ["step-1"]
    gate = result.next[GATE].log
    assert "TRAINING STARTS FROM THE BEGINNING: no checkpoint there is proven complete and intact" in gate
    assert "step-1 (doubtful: " in gate
    assert "to resume from a doubtful one, set restore to latest or to its name" in gate
    logged = warning(result.next, "training starts from the beginning")
    assert (logged["level"], [*logged["passed_over"]]) == ("error", ["step-1"])


def test_latest_takes_the_doubtful_one(results: Scenarios[Result]) -> None:
    latest = results["first"].latest
    assert latest is not None
    assert facts(latest)["files"] == ["step-1/model.pt"]
    assert "resuming from step-1 (commit 1)" in latest[GATE].log
