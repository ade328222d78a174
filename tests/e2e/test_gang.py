"""Several pods write a checkpoint together: an Indexed Job, one pod of which is killed in the middle.

The gang is imitated: its pods do not communicate. The test reports to them what they would notice: that
all are running, and that one was lost, whereupon the others fail as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from podferry.contract.destination.commit import Commit
from podferry.webhook.pod.pod_json import SIDECAR
from tests.e2e.manifests import TRAINER, Object, container, job
from tests.e2e.namespace import Namespace
from tests.e2e.outcome import Outcome, PodOutcome
from tests.e2e.site import Site
from tests.e2e.trainers import COMMON, release_trainer

WORLD = 3
SAVES = 14
KILLED = 1
"""The rank whose pod is deleted."""
GRACE = 10
"""Seconds; an agent that waits for the parts of a lost rank uses up half of them."""
INDEX = "batch.kubernetes.io/job-completion-index"
RANK = f"""{COMMON}
signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
rank = int(os.environ["JOB_COMPLETION_INDEX"])

def step_of(folder):
    return int(folder.name.removeprefix("step-"))

found = sorted(checkpoints.glob("step-*"), key=step_of)
say(files=sorted(str(path.relative_to(checkpoints)) for path in checkpoints.rglob("*.json")))
first = step_of(found[-1]) + 1 if found else 1
say(resumed=first - 1)
wait_for("go")
for step in range(first, {SAVES} + 1):
    folder = checkpoints / f"step-{{step}}"
    folder.mkdir(exist_ok=True)
    own = {{"rank": rank, "step": step, "pad": "p" * 100_000}}
    (folder / f"rank-{{rank}}.json").write_text(json.dumps(own))
    (folder / "config.json").write_text(json.dumps({{"world": {WORLD}}}))
    (folder / "state.json").write_text(json.dumps({{"of": rank}}))
    say(wrote=step)
    time.sleep(2)
    if os.path.exists("/tmp/lost"):
        sys.exit(1)
"""


class Result(NamedTuple):
    """The result of the Job."""

    outcome: Outcome
    commits: list[Commit]
    files: list[dict[tuple[str, int | None], bytes]]


def contents(namespace: Namespace, commit: Commit) -> dict[tuple[str, int | None], bytes]:
    """A commit's files by name and rank."""
    place = f"checkpoints/{commit.lineage}"
    return {(file.name, file.rank): namespace.bucket.read(f"{place}/{file.object}") for file in commit.files}


def sure_steps(namespace: Namespace, lineage: str) -> list[int | None]:
    """The steps that a rank may resume from: the first save shows nothing, the next one proves it."""
    return [commit.step for commit in namespace.bucket.commits(lineage) if commit.is_sure]


def rank_of(pod: PodOutcome) -> int:
    return int(pod.object["metadata"]["annotations"][INDEX])


def log_entries(log: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.splitlines()]


def wrote(namespace: Namespace, pod: PodOutcome) -> int:
    """The last step that a rank has saved, or 0."""
    return max(
        (one["wrote"] for one in log_entries(namespace.log(pod.name, TRAINER)) if "wrote" in one), default=0
    )


def all_together(namespace: Namespace, manifest: Object) -> dict[int, PodOutcome]:
    """Wait until a pod of each rank is ready to train, and release them."""

    def ready() -> dict[int, PodOutcome] | None:
        pods = [PodOutcome(one, {}) for one in namespace.pods(manifest)]
        alive = [one for one in pods if "deletionTimestamp" not in one.object["metadata"]]
        training = [one for one in alive if TRAINER in one.containers and "running" in one[TRAINER].state]
        ranks = {rank_of(one): one for one in training}
        return ranks if len(ranks) == WORLD else None

    ranks = namespace.until("all ranks to be there", ready, timeout=120)
    for one in ranks.values():
        release_trainer(namespace, one.name, "go")
    return ranks


def lose_one(namespace: Namespace, ranks: dict[int, PodOutcome]) -> None:
    """Delete the pod of one rank; the others save once more without it before they fail."""
    last = wrote(namespace, ranks[KILLED])
    namespace.kubectl("delete", "pod", ranks.pop(KILLED).name, "--wait=false")
    for one in ranks.values():
        until_saved(namespace, one, last + 2)
        release_trainer(namespace, one.name, "lost")


def until_saved(namespace: Namespace, pod: PodOutcome, step: int) -> None:
    namespace.until(f"{pod.name} to save step {step}", lambda: wrote(namespace, pod) >= step)


@pytest.fixture(scope="module")
def result(site: Site) -> Iterator[Result]:
    with site.namespace() as namespace:
        manifest = job(
            "gang",
            container(script=RANK),
            annotations=namespace.training_annotations(world=WORLD, checkpoint_size="4Mi", grace=GRACE),
            backoff=6,
            job_spec={"completions": WORLD, "parallelism": WORLD, "completionMode": "Indexed"},
            terminationGracePeriodSeconds=GRACE,
        )
        namespace.start(manifest)
        lineage = namespace.lineage("gang")
        ranks = all_together(namespace, manifest)
        namespace.until("a sure commit of all ranks", lambda: sure_steps(namespace, lineage), timeout=90)
        lose_one(namespace, ranks)
        all_together(namespace, manifest)
        outcome = namespace.outcome(manifest, timeout=150)
        assert outcome.succeeded, outcome
        commits = namespace.bucket.commits(lineage)
        yield Result(outcome, commits, [contents(namespace, one) for one in commits])


def test_every_commit_holds_all_parts_of_one_step(result: Result) -> None:
    assert result.commits, result.outcome
    for commit, files in zip(result.commits, result.files, strict=True):
        folder = f"step-{commit.step}"
        shared = [(f"{folder}/config.json", None)]
        own = [(f"{folder}/rank-{rank}.json", None) for rank in range(WORLD)]
        differing = [(f"{folder}/state.json", rank) for rank in range(WORLD)]
        assert sorted(files, key=str) == sorted([*shared, *own, *differing], key=str)
        for rank in range(WORLD):
            found = json.loads(files[f"{folder}/rank-{rank}.json", None])
            assert (found["rank"], found["step"]) == (rank, commit.step)
            assert json.loads(files[f"{folder}/state.json", rank]) == {"of": rank}


def test_steps_are_committed_in_order_up_to_the_last(result: Result) -> None:
    steps = [commit.step for commit in result.commits]
    assert steps == sorted(steps, key=lambda step: step or 0)
    assert len(set(steps)) == len(steps)
    assert steps[-1] == SAVES, "the gang finds together again after one of it was killed"


def test_all_ranks_resume_from_one_commit_with_all_ranks_files(result: Result) -> None:
    newest = {rank_of(one): log_entries(one[TRAINER].log) for one in result.outcome.pods}
    assert sorted(newest) == list(range(WORLD))
    [resumed] = {log[1]["resumed"] for log in newest.values()}
    assert resumed in {commit.step for commit in result.commits}
    folder = f"step-{resumed}"
    ranks = [f"{folder}/rank-{rank}.json" for rank in range(WORLD)]
    for log in newest.values():
        assert log[0]["files"] == sorted([f"{folder}/config.json", *ranks, f"{folder}/state.json"])


def test_what_could_not_be_joined_is_named_with_the_rank_that_it_lacked(result: Result) -> None:
    logs = "\n".join(one[SIDECAR].log for one in result.outcome.pods)
    assert re.search(rf"step-\d+ waits for rank {KILLED} of {WORLD}|lacked rank {KILLED} of {WORLD}", logs), (
        logs
    )
