"""Twenty deletes: an unmodified trainer loses its pod in the middle of a save, again and again.

The test stands in for a controller: it makes the next pod of the same lineage at once, while the one before
still ends, as a Job does.
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
from podferry.webhook.pod_json import SIDECAR
from tests.e2e.figures import ROOT, Figures
from tests.e2e.manifests import TRAINER, Object, container, pod
from tests.e2e.site import Site
from tests.e2e.space import Answer, Space

DELETES = 20
MISSES = 3
"""Pods that may end between two saves: a node takes its time from the delete to the signal."""
SAVES_EACH = 1
"""Saves that a pod finishes before it is deleted in the middle of the next."""
GRACE = 20
WAITS = "waiting for a previous agent to drain"
PICTURE = ROOT / "build" / "e2e" / "twenty-deletes.png"
TITLE = f"{DELETES} pods deleted in the middle of a save, the test standing in for a controller"
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
"""Plain Python that knows nothing of podferry: least squares by gradient descent, saved in place, slowly."""


LAUNCHER = """
import signal, subprocess, sys
trainer = subprocess.Popen([sys.executable, "-u", "-c", sys.argv[1]])
signal.signal(signal.SIGTERM, lambda *_: trainer.terminate())
sys.exit(trainer.wait() % 256)
"""
"""Passes SIGTERM on, as torchrun does: the kernel keeps it from a first process that does not ask for it."""


class Life(NamedTuple):
    """What one pod has said.

    Attributes:
        resumed: The step that its trainer began after.
        losses: By step.
        saved: The steps whose saves it finished.
        torn: The step whose save was cut off, None where none was.
        waited: Whether its agent waited for the one before it to drain.
    """

    resumed: int
    losses: dict[int, float]
    saved: list[int]
    torn: int | None
    waited: bool


class Story(NamedTuple):
    """All pods, and the commits after each of them."""

    lives: list[Life]
    commits: list[Commit]


def trainer(space: Space, number: int, steps: int) -> Object:
    wishes = space.training(lineage="twenty", checkpoint_size="8Mi", grace=GRACE)
    command = ["python3", "-u", "-c", LAUNCHER, TRAINING.replace("STEPS", str(steps))]
    return pod(f"twenty-{number}", container(command=command), annotations=wishes)


def facts(log: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.splitlines() if line.startswith("{")]


def life(log: str, agent: str) -> Life:
    """What a trainer's log and its agent's tell, to their last lines."""
    said = facts(log)
    saved = [one["saved"] for one in said if "saved" in one]
    torn = [one["saving"] for one in said if "saving" in one and one["saving"] not in saved]
    losses = {one["step"]: one["loss"] for one in said if "loss" in one}
    return Life(said[0]["resumed"], losses, saved, torn[-1] if torn else None, WAITS in agent)


def in_the_middle(space: Space, thing: Object) -> None:
    """Wait until the trainer has saved some and is saving another."""

    def saving() -> bool:
        said = facts(space.log(thing["metadata"]["name"], TRAINER))
        return sum("saved" in one for one in said) >= SAVES_EACH and "saving" in said[-1]

    space.until("a save to be under way", saving, timeout=90)


@pytest.fixture(scope="module")
def story(site: Site) -> Iterator[Story]:
    with site.namespace() as space, ThreadPoolExecutor() as pool:

        def follow(thing: Object, name: str) -> Future[Answer]:
            return pool.submit(space.ask, "logs", "-f", thing["metadata"]["name"], "-c", name, timeout=180)

        lives: list[Life] = []
        steps = 10 * (
            DELETES * SAVES_EACH + MISSES * (SAVES_EACH + 1) + 1
        )  # none but the last ends by itself
        thing = trainer(space, 0, steps)
        space.start(thing)
        while sum(one.torn is not None for one in lives) < DELETES and len(lives) < DELETES + MISSES:
            in_the_middle(space, thing)
            logs = [follow(thing, name) for name in (TRAINER, SIDECAR)]
            space.kubectl("delete", "pod", thing["metadata"]["name"], "--wait=false")
            thing = trainer(space, len(lives) + 1, steps)
            space.start(thing)
            lives.append(life(*(log.result().output for log in logs)))
        outcome = space.outcome(thing, timeout=150)
        assert outcome.succeeded, outcome
        lives.append(life(outcome[TRAINER].log, outcome[SIDECAR].log))
        yield Story(lives, space.bucket.commits("twenty"))


def test_each_pod_resumes_from_the_newest_durable_step(story: Story) -> None:
    writers = list(dict.fromkeys(commit.agent_id for commit in story.commits))
    assert len(writers) == len(story.lives), "each pod has made something durable"
    assert [life.resumed for life in story.lives[1:]] == [
        max(commit.step or 0 for commit in story.commits if commit.agent_id in writers[: number + 1])
        for number in range(len(story.lives) - 1)
    ], "what a pod that ended has made durable is what the next one begins with"


def test_twenty_saves_were_cut_off_and_none_of_these_was_committed(story: Story) -> None:
    """The next pod saves that step again, from the same weights."""
    assert sum(one.torn is not None for one in story.lives) == DELETES
    for one, after in itertools.pairwise(story.lives):
        assert one.torn is None or after.resumed < one.torn


def test_the_loss_goes_on_where_it_was(story: Story, figures: Figures) -> None:
    curve: dict[int, float] = {}
    for one in story.lives:
        for step, loss in one.losses.items():
            assert curve.setdefault(step, loss) == loss, f"step {step} was computed from other weights"
    assert sorted(curve) == list(range(1, max(curve) + 1)), "no step is missing"
    draw(story, PICTURE)
    figures.record(TITLE, {"picture": str(PICTURE.relative_to(ROOT)), **summary(story)})


def test_nothing_whole_was_lost(story: Story) -> None:
    """At most the checkpoint in flight: what was saved when the pod was deleted is durable."""
    steps = [commit.step for commit in story.commits]
    assert steps == [step for one in story.lives for step in one.saved]


def summary(story: Story) -> dict[str, Any]:
    """What the picture shows, in numbers."""
    torn = [one.torn - story.lives[number + 1].resumed for number, one in enumerate(story.lives) if one.torn]
    return {
        "steps": max(step for one in story.lives for step in one.losses),
        "commits": len(story.commits),
        "pods_that_waited_for_the_one_before": sum(one.waited for one in story.lives),
        "most_steps_from_the_save_cut_off_back_to_the_resume": max(torn),
    }


def draw(story: Story, path: Path) -> None:
    """The loss over steps, a colour for each pod."""
    from matplotlib import pyplot  # noqa: PLC0415 - where these tests are only collected, it is not installed

    pyplot.switch_backend("agg")
    figure, axes = pyplot.subplots(figsize=(10, 5))
    for number, one in enumerate(story.lives):
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
