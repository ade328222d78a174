"""Twenty deletes: an unmodified trainer loses its pod in the middle of a save, repeatedly.

The test acts as the controller: like a Job, it creates the next pod of the same lineage while the previous
one is still terminating.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from podferry.contract.destination.commit import Commit
from podferry.webhook.pod.pod_json import SIDECAR
from tests.e2e.figures import ROOT, Figures
from tests.e2e.manifests import TRAINER, Object, container, pod
from tests.e2e.namespace import Answer, Namespace
from tests.e2e.site import Site

DELETES = 20
MISSES = 3
"""Pods that may end between two saves: a node takes its time from the delete to the signal."""
SAVES_EACH = 1
"""Saves that a pod finishes before it is deleted in the middle of the next."""
GRACE = 20
WAITS = "waiting for a previous agent to drain"
PICTURE = ROOT / "build" / "e2e" / "twenty-deletes.png"
TITLE = f"{DELETES} pods deleted in the middle of a save, the test acting as the controller"
TRAINING = """
import json, math, os, pathlib, random, time
folder = pathlib.Path("/dev/shm/checkpoints")

def say(**facts):
    print(json.dumps(facts), flush=True)

def save(step, weights):
    say(saving=step)
    text = json.dumps({"step": step, "weights": weights, "pad": "p" * 2_000_000})
    with open(folder / f"step-{step}.json", "w") as file:
        for start in range(0, len(text), 400_000):
            file.write(text[start:start + 400_000])
            file.flush()
            time.sleep(0.4)
    say(saved=step)

def load():
    for path in sorted(folder.glob("step-*.json"), key=lambda path: int(path.stem[5:]), reverse=True):
        return json.loads(path.read_text())
    return {"step": 0, "weights": [0.0] * 8}

draw = random.Random(1)
rows = [[draw.gauss(0, 1) for _ in range(8)] for _ in range(200)]
truth = [draw.gauss(0, 1) for _ in range(8)]
goals = [sum(x * w for x, w in zip(row, truth)) for row in rows]
state = load()
weights = state["weights"]
say(resumed=state["step"])
for step in range(state["step"] + 1, STEPS + 1):
    errors = [sum(x * w for x, w in zip(row, weights)) - goal for row, goal in zip(rows, goals)]
    say(step=step, loss=sum(error * error for error in errors) / len(rows))
    for at in range(8):
        weights[at] -= 0.004 * 2 * sum(error * row[at] for error, row in zip(errors, rows)) / len(rows)
    time.sleep(0.02)
    if step % 10 == 0:
        save(step, weights)
say(done=True)
"""
"""Plain Python that does not use podferry: least squares by gradient descent, saved in place, slowly."""


LAUNCHER = """
import signal, subprocess, sys
trainer = subprocess.Popen([sys.executable, "-u", "-c", sys.argv[1]])
signal.signal(signal.SIGTERM, lambda *_: trainer.terminate())
sys.exit(trainer.wait() % 256)
"""
"""Passes SIGTERM on, as torchrun does: the kernel keeps it from a first process that does not ask for it."""


class Life(NamedTuple):
    """One pod, by its logs.

    Attributes:
        resumed: The step that its trainer resumed from.
        losses: By step.
        saved: The steps whose saves it finished.
        torn: The step whose save was cut off, or None.
        waited: Whether its agent waited for the previous one to drain.
    """

    resumed: int
    losses: dict[int, float]
    saved: list[int]
    torn: int | None
    waited: bool


class Result(NamedTuple):
    """All pods, and the commits after each of them."""

    lives: list[Life]
    commits: list[Commit]


def trainer(namespace: Namespace, number: int, steps: int) -> Object:
    annotations = namespace.training_annotations(lineage="twenty", checkpoint_size="8Mi", grace=GRACE)
    command = ["python3", "-u", "-c", LAUNCHER, TRAINING.replace("STEPS", str(steps))]
    return pod(f"twenty-{number}", container(command=command), annotations=annotations)


def facts(log: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.splitlines() if line.startswith("{")]


def life(log: str, agent: str) -> Life:
    """The life of a pod by the logs of its trainer and its agent."""
    entries = facts(log)
    saved = [one["saved"] for one in entries if "saved" in one]
    torn = [one["saving"] for one in entries if "saving" in one and one["saving"] not in saved]
    losses = {one["step"]: one["loss"] for one in entries if "loss" in one}
    return Life(entries[0]["resumed"], losses, saved, torn[-1] if torn else None, WAITS in agent)


def in_the_middle(namespace: Namespace, manifest: Object) -> None:
    """Wait until the trainer has saved some and is saving another."""

    def saving() -> bool:
        entries = facts(namespace.log(manifest["metadata"]["name"], TRAINER))
        return sum("saved" in one for one in entries) >= SAVES_EACH and "saving" in entries[-1]

    namespace.until("a save to be under way", saving, timeout=90)


@pytest.fixture(scope="module")
def result(site: Site) -> Iterator[Result]:
    with site.namespace() as namespace, ThreadPoolExecutor() as pool:

        def follow(manifest: Object, name: str) -> Future[Answer]:
            return pool.submit(
                namespace.ask, "logs", "-f", manifest["metadata"]["name"], "-c", name, timeout=180
            )

        lives: list[Life] = []
        steps = 10 * (
            DELETES * SAVES_EACH + MISSES * (SAVES_EACH + 1) + 1
        )  # none but the last ends by itself
        manifest = trainer(namespace, 0, steps)
        namespace.start(manifest)
        while sum(one.torn is not None for one in lives) < DELETES and len(lives) < DELETES + MISSES:
            in_the_middle(namespace, manifest)
            logs = [follow(manifest, name) for name in (TRAINER, SIDECAR)]
            namespace.kubectl("delete", "pod", manifest["metadata"]["name"], "--wait=false")
            manifest = trainer(namespace, len(lives) + 1, steps)
            namespace.start(manifest)
            lives.append(life(*(log.result().output for log in logs)))
        outcome = namespace.outcome(manifest, timeout=150)
        assert outcome.succeeded, outcome
        lives.append(life(outcome[TRAINER].log, outcome[SIDECAR].log))
        yield Result(lives, namespace.bucket.commits("twenty"))


def test_each_pod_resumes_from_the_newest_durable_step(result: Result) -> None:
    agents = list(dict.fromkeys(commit.agent_id for commit in result.commits))
    assert len(agents) == len(result.lives), "each pod has made something durable"
    assert [life.resumed for life in result.lives[1:]] == [
        max(commit.step or 0 for commit in result.commits if commit.agent_id in agents[: number + 1])
        for number in range(len(result.lives) - 1)
    ], "what a pod that ended has made durable is what the next one begins with"


def test_twenty_saves_were_cut_off_and_none_of_these_was_committed(result: Result) -> None:
    """The next pod saves that step again, from the same weights."""
    assert sum(one.torn is not None for one in result.lives) == DELETES
    for one, after in itertools.pairwise(result.lives):
        assert one.torn is None or after.resumed < one.torn


def test_the_loss_curve_continues(result: Result, figures: Figures) -> None:
    curve: dict[int, float] = {}
    for one in result.lives:
        for step, loss in one.losses.items():
            assert curve.setdefault(step, loss) == loss, f"step {step} was computed from other weights"
    assert sorted(curve) == list(range(1, max(curve) + 1)), "no step is missing"
    draw(result, PICTURE)
    figures.record(TITLE, {"picture": str(PICTURE.relative_to(ROOT)), **summary(result)})


def test_no_complete_checkpoint_was_lost(result: Result) -> None:
    """At most the checkpoint in flight: what was saved when the pod was deleted is durable."""
    steps = [commit.step for commit in result.commits]
    assert steps == [step for one in result.lives for step in one.saved]


def summary(result: Result) -> dict[str, Any]:
    """What the picture shows, in numbers."""
    torn = [
        one.torn - result.lives[number + 1].resumed for number, one in enumerate(result.lives) if one.torn
    ]
    return {
        "steps": max(step for one in result.lives for step in one.losses),
        "commits": len(result.commits),
        "pods_that_waited_for_the_one_before": sum(one.waited for one in result.lives),
        "most_steps_from_the_save_cut_off_back_to_the_resume": max(torn),
    }


def draw(result: Result, path: Path) -> None:
    """The loss over steps, a colour for each pod."""
    from matplotlib import pyplot  # noqa: PLC0415 - where these tests are only collected, it is not installed

    pyplot.switch_backend("agg")
    figure, axes = pyplot.subplots(figsize=(10, 5))
    for number, one in enumerate(result.lives):
        axes.semilogy(list(one.losses), list(one.losses.values()), color=f"C{number % 10}")
        if number:
            axes.axvline(one.resumed, color="lightgrey", linewidth=0.8, zorder=0)
    axes.set(
        xlabel="step",
        ylabel="loss",
        title=f"{TITLE}\ngrey: where the next one resumed",
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
