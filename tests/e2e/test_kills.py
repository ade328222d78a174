"""Whoever dies, the last checkpoint is durable: the trainer, the pod, or the agent's worker at any stage."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import pytest

from podferry.contract.destination.commit import Commit
from podferry.webhook.pod_json import GATE, SIDECAR
from tests.e2e.door import door
from tests.e2e.manifests import TRAINER, Object, container, job, pod
from tests.e2e.outcome import Outcome
from tests.e2e.site import Site
from tests.e2e.space import Space
from tests.e2e.stories import Story, Told, told
from tests.e2e.trainers import COMMON, assert_unharmed, let

MIB = 1 << 20
ENDPOINT = "podferry.io/endpoint"
GRACE = 15
"""Seconds that a deleted pod has; a deaf trainer takes them all."""
FILES = {f"{letter}.bin": letter.encode() * (MIB // 4) for letter in "abcdef"}
SEEN = {name: [len(data), data[:1].decode()] for name, data in FILES.items()}

UNDER_KILLS = f"""{COMMON}
data = {{path.name: path.read_bytes() for path in dataset.iterdir()}}
assert all(set(content) == {{content[0]}} for content in data.values())
say(data={{name: [len(content), chr(content[0])] for name, content in data.items()}})
say(found=sorted(os.listdir(checkpoints)))
wait_for("go")
write(2, {MIB})
wait_for("end")
"""
OUT_OF_MEMORY = f"""{COMMON}
write(1, {MIB})
hog = []
while True:
    hog.append(bytearray(b"x") * {8 * MIB})
"""
FAILS = f"""{COMMON}
write(1, {MIB})
sys.exit(3)
"""
BACKLOG = f"""
for step in (1, 2, 3):
    write(step, {4 * MIB})
say(done=True)
time.sleep(120)
"""
DIES_AT_ONCE = "signal.signal(signal.SIGTERM, lambda *_: os._exit(143))"
HEARS_NOTHING = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
FAILS_ONCE = f"""{COMMON}
if not (checkpoints / "step-1.bin").exists():
    write(1, {MIB})
    wait_for("go")
    sys.exit(1)
write(2, {MIB})
"""
KILL = """
import os, pathlib, signal, urllib.request
print(urllib.request.urlopen(os.environ["PODFERRY_AGENT"] + "/v1/status", timeout=10).read().decode())
for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    if b"--worker" in path.read_bytes().split(b"\\0"):
        os.kill(int(path.parent.name), signal.SIGKILL)
"""
"""Tells the agent's status and kills its worker; runs in the sidecar."""


class Ended(NamedTuple):
    """How a story has ended.

    Attributes:
        outcome: Of its pod or Job.
        commits: Of its lineage, and their bytes by name.
        stage: The agent's when its worker was killed, where one was.
    """

    outcome: Outcome
    commits: list[Commit]
    files: list[dict[str, bytes]]
    stage: str = ""


class Kill(NamedTuple):
    """When a worker is killed.

    Attributes:
        stage: What the agent must say then.
        held: The request that is held until it is dead.
        before: Whether the trainer writes its checkpoint before that.
    """

    stage: str
    held: str
    before: bool = False


KILLS = {
    "planning": Kill("planning", "GET /e2e[?/]*prefix=datasets*"),
    "restoring": Kill("restoring", "GET /e2e/checkpoints/*/step-1.bin *"),
    "prefetching": Kill("prefetching", "GET /e2e/datasets/kills/d.bin *"),
    "open": Kill("open", ""),
    "uploading": Kill("open", "PUT /e2e/checkpoints/*/step-2.bin*", before=True),
}


def ended(space: Space, thing: Object, lineage: str, stage: str = "", timeout: float = 120) -> Ended:
    outcome = space.outcome(thing, timeout)
    commits = space.bucket.commits(lineage)
    return Ended(outcome, commits, [space.bucket.committed(one) for one in commits], stage)


def kill(space: Space, name: str) -> str:
    """Kill the agent's worker; the stage that it was in."""
    stage: str = json.loads(space.exec(name, SIDECAR, "python3", "-c", KILL))["stage"]
    return stage


def worker_killed(name: str, space: Space) -> Ended:
    what = KILLS[name]
    if name == "restoring":
        space.run(writer("earlier", "restoring", space), 120)
    with door(space.cluster, space.bucket, *([what.held] if what.held else [])) as closed:
        wishes = space.training(space.bucket.uri("datasets/kills"), lineage=name)
        wishes |= {ENDPOINT: closed.endpoint}
        thing = pod(name, container(script=UNDER_KILLS), annotations=wishes)
        space.start(thing)
        if name in {"open", "uploading"}:
            space.until_container(thing, TRAINER, timeout=120)
        if what.before:
            let(space, name, "go")
        if what.held:
            closed.until_held()
        stage = kill(space, name)
        closed.open()
        space.until_container(thing, TRAINER, timeout=120)
        let(space, name, "go")
        space.until_logged(thing, TRAINER, "wrote")
        let(space, name, "end")
        return ended(space, thing, name, stage)


def writer(name: str, lineage: str, space: Space) -> Object:
    script = f"{COMMON}\nwrite(1, {MIB})"
    return pod(name, container(script=script), annotations=space.training(lineage=lineage))


def trainer_dies(script: str, name: str, space: Space) -> Ended:
    limits = {"limits": {"memory": "64Mi"}}
    thing = pod(name, container(script=script, resources=limits), annotations=space.training(lineage=name))
    space.start(thing)
    return ended(space, thing, name)


def deleted(handler: str, name: str, space: Space) -> Ended:
    """A pod is deleted while no checkpoint has gone out; from then on they go at 4 MiB a second."""
    with door(space.cluster, space.bucket, "PUT /e2e/checkpoints/*step-*") as slow:
        wishes = space.training(lineage=name, grace=GRACE) | {ENDPOINT: slow.endpoint}
        trainer = container(script=COMMON + handler + BACKLOG)
        thing = pod(name, trainer, annotations=wishes, terminationGracePeriodSeconds=GRACE)
        space.start(thing)
        space.until_logged(thing, TRAINER, "done", timeout=120)
        slow.until_held("step-1")
        assert space.bucket.commits(name) == []
        outcome = space.pod(thing)
        space.kubectl("delete", "pod", name, "--wait=false")
        slow.slow(4 * MIB)
        space.cluster.wait(f"pod/{name}", "delete", namespace=space.name)
    commits = space.bucket.commits(name)
    files = [space.bucket.committed(one) for one in commits]
    return Ended(Outcome("Deleted", "", "", (outcome,)), commits, files)


def job_on_failure(space: Space) -> Ended:
    thing = job(
        "on-failure",
        container(script=FAILS_ONCE),
        annotations=space.training(),
        backoff=3,
        restartPolicy="OnFailure",
    )
    space.start(thing)
    space.until_logged(thing, TRAINER, "wrote", timeout=120)
    name = space.pod(thing).name
    stage = kill(space, name)
    let(space, name, "go")
    return ended(space, thing, space.lineage("on-failure"), stage)


STORIES: dict[str, Story[Ended]] = {
    **{name: partial(worker_killed, name) for name in KILLS},
    "out-of-memory": partial(trainer_dies, OUT_OF_MEMORY, "out-of-memory"),
    "fails": partial(trainer_dies, FAILS, "fails"),
    "deleted": partial(deleted, DIES_AT_ONCE, "deleted"),
    "deleted-deaf": partial(deleted, HEARS_NOTHING, "deleted-deaf"),
    "on-failure": job_on_failure,
}


@pytest.fixture(scope="module")
def stories(site: Site) -> Iterator[Told[Ended]]:
    site.upload_dataset("kills", FILES)
    with told(site, STORIES) as found:
        yield found


@pytest.mark.parametrize("name", KILLS)
def test_the_trainer_never_notices_that_the_worker_was_killed(stories: Told[Ended], name: str) -> None:
    story = stories[name]
    outcome = story.outcome
    assert story.stage == KILLS[name].stage
    assert_unharmed(outcome)
    assert "the worker exited with -9" in outcome[SIDECAR].log
    data, found, *_ = map(json.loads, outcome[TRAINER].log.splitlines())
    assert data == {"data": SEEN}
    restored = ["step-1.bin"] if name == "restoring" else []
    assert found == {"found": restored}
    assert [one.step for one in story.commits] == [1, 2][-1 - len(restored) :]
    assert story.files[-1] == {"step-2.bin": b"2" * MIB}


def test_a_killed_prefetch_keeps_what_is_whole(stories: Told[Ended]) -> None:
    gate = stories["prefetching"].outcome[GATE]
    assert f"{len(FILES) - 1} of them kept" in gate.log


def test_the_checkpoint_of_a_trainer_that_is_oom_killed_is_durable(stories: Told[Ended]) -> None:
    story = stories["out-of-memory"]
    assert (story.outcome.phase, story.outcome[TRAINER].reason) == ("Failed", "OOMKilled"), story.outcome
    assert story.files == [{"step-1.bin": b"1" * MIB}]
    assert_agent_is_well(story.outcome)


def test_the_checkpoint_of_a_trainer_that_fails_is_durable(stories: Told[Ended]) -> None:
    story = stories["fails"]
    assert (story.outcome.phase, story.outcome[TRAINER].exit_code) == ("Failed", 3), story.outcome
    assert story.files == [{"step-1.bin": b"1" * MIB}]
    assert_agent_is_well(story.outcome)


@pytest.mark.parametrize("name", ["deleted", "deleted-deaf"])
def test_a_deleted_pod_sends_its_backlog(stories: Told[Ended], name: str) -> None:
    """Also where the trainer uses up the whole grace, after which the agent has two seconds."""
    story = stories[name]
    assert story.files == [{f"step-{step}.bin": b"%d" % step * 4 * MIB} for step in (1, 2, 3)]
    assert [one.step for one in story.commits] == [1, 2, 3]


def test_a_job_on_failure_survives_its_trainers_and_its_workers_end(stories: Told[Ended]) -> None:
    story = stories["on-failure"]
    assert story.outcome.succeeded, story.outcome
    restarts = {one.name: one.restarts for one in story.outcome.pod.containers.values()}
    assert restarts == {SIDECAR: 0, GATE: 0, TRAINER: 1}
    assert len(story.outcome.pods) == 1
    assert [one.step for one in story.commits] == [1, 2]


def assert_agent_is_well(outcome: Outcome) -> None:
    assert (outcome[SIDECAR].exit_code, outcome[SIDECAR].restarts) == (0, 0)
