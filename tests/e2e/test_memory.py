"""What trainers do to memory: empty `/dev/shm`, share it among processes, fill the checkpoint volume."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from podferry.contract.destination.commit import Commit
from podferry.webhook.pod_json import SIDECAR
from tests.cluster.layout import GPUS
from tests.e2e.door import door
from tests.e2e.manifests import TRAINER, Object, container, pod
from tests.e2e.outcome import Outcome
from tests.e2e.site import Site
from tests.e2e.space import Space
from tests.e2e.stories import Told, told
from tests.e2e.trainers import COMMON, assert_unharmed, let

MIB = 1 << 20
FILES = {"a.bin": b"a" * MIB, "deep/b.bin": b"b" * MIB}
ENDPOINT = "podferry.io/endpoint"

REMOVES = f"""{COMMON}
write(1, {MIB})
wait_for("go")
subprocess.run("rm -rf /dev/shm/*", shell=True, capture_output=True)
files = [path for path in dataset.rglob("*") if path.is_file()]
say(left={{str(path.relative_to(dataset)): path.stat().st_size for path in files}})
say(checkpoints=os.listdir(checkpoints))
wait_for("end")
"""
SHARES = f"""{COMMON}
import mmap, multiprocessing

def load(number):
    with open(f"/dev/shm/batch-{{number}}", "w+b") as file:  # as shm_open(3) does
        file.truncate({125 * MIB})
        with mmap.mmap(file.fileno(), {125 * MIB}) as batch:
            for _ in range(125):
                batch.write(bytes([number]) * {MIB})

workers = [multiprocessing.Process(target=load, args=(number,)) for number in range(1, 5)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
say(codes=[worker.exitcode for worker in workers])
files = sorted(pathlib.Path("/dev/shm").glob("batch-*"))
say(shared=sum(path.stat().st_blocks * 512 for path in files), last=[path.read_bytes()[-1] for path in files])
"""
FILLS = f"""{COMMON}
import errno, zipfile

def save(step):
    with zipfile.ZipFile(checkpoints / f"step-{{step}}.pt", "w") as archive:
        archive.writestr("data", os.urandom({5 * MIB}))

step = 1
while True:
    try:
        save(step)
    except OSError as error:
        assert error.errno == errno.ENOSPC
        break
    step += 1
say(full=step)
wait_for("go")
deadline = time.monotonic() + 60
while True:
    try:
        save(step)
        break
    except OSError as error:
        assert error.errno == errno.ENOSPC and time.monotonic() < deadline
        time.sleep(0.2)
say(saved=step)
"""
USES_GPU = "print('trained')"


class Ended(NamedTuple):
    """How a story has ended.

    Attributes:
        outcome: Of its pod.
        commits: Of its lineage, and their bytes by name.
        seen: What a container had written on the way.
    """

    outcome: Outcome
    commits: list[Commit]
    files: list[dict[str, bytes]]
    seen: str = ""


def ended(space: Space, thing: Object, seen: str = "") -> Ended:
    outcome = space.outcome(thing, 120)
    commits = space.bucket.commits(thing["metadata"]["name"])
    return Ended(outcome, commits, [space.bucket.committed(one) for one in commits], seen)


def removes(space: Space) -> Ended:
    """All of `/dev/shm` is removed while the checkpoint is on its way."""
    name = "removes"
    with door(space.cluster, space.bucket, "PUT /e2e/checkpoints/*step-1*") as closed:
        wishes = space.training(space.bucket.uri("datasets/memory"), lineage=name)
        thing = pod(name, container(script=REMOVES), annotations=wishes | {ENDPOINT: closed.endpoint})
        space.start(thing)
        closed.until_held("step-1", timeout=90)
        let(space, name, "go")
        space.until_logged(thing, TRAINER, "checkpoints")
        closed.open()
        let(space, name, "end")
        return ended(space, thing)


def shares(space: Space) -> Ended:
    resources = {"limits": {"memory": "1Gi"}}
    wishes = space.training(space.bucket.uri("datasets/memory"), lineage="shares", shm_size="600Mi")
    thing = pod("shares", container(script=SHARES, resources=resources), annotations=wishes)
    space.start(thing)
    return ended(space, thing)


def fills(space: Space) -> Ended:
    """The store takes nothing while the trainer writes until its volume is full; then it takes all."""
    name = "fills"
    with door(space.cluster, space.bucket, "PUT /e2e/checkpoints/*step-*") as closed:
        wishes = space.training(lineage=name) | {ENDPOINT: closed.endpoint}
        resources = {"limits": {"memory": "64Mi"}}
        thing = pod(name, container(script=FILLS, resources=resources), annotations=wishes)
        space.start(thing)
        space.until_logged(thing, TRAINER, "full", timeout=90)
        log = space.until_logged(thing, SIDECAR, "full")
        closed.open()
        let(space, name, "go")
        return ended(space, thing, log)


def uses_gpu(space: Space) -> Ended:
    resources = {"limits": {"nvidia.com/gpu": "1", "memory": "64Mi"}}
    wishes = space.training(space.bucket.uri("datasets/memory"), lineage="gpu")
    thing = pod("gpu", container(script=USES_GPU, resources=resources), annotations=wishes)
    space.start(thing)
    return ended(space, thing)


STORIES = {"removes": removes, "shares": shares, "fills": fills, "gpu": uses_gpu}


@pytest.fixture(scope="module")
def stories(site: Site) -> Iterator[Told[Ended]]:
    site.upload_dataset("memory", FILES)
    site.cluster.set_gpus(GPUS)
    with told(site, STORIES) as found:
        yield found


def facts(outcome: Outcome) -> dict[str, object]:
    """All that a trainer said."""
    lines = map(json.loads, outcome[TRAINER].log.splitlines())
    return {name: fact for line in lines for name, fact in line.items()}


def test_removing_all_of_dev_shm_reaches_neither_the_dataset_nor_a_pin(stories: Told[Ended]) -> None:
    story = stories["removes"]
    assert_unharmed(story.outcome)
    said = facts(story.outcome)
    assert said["left"] == {name: len(data) for name, data in FILES.items()}
    assert said["checkpoints"] == []
    assert story.files == [{"step-1.bin": b"1" * MIB}]


def test_loader_processes_share_500_mib(stories: Told[Ended]) -> None:
    story = stories["shares"]
    assert_unharmed(story.outcome)
    assert facts(story.outcome) == {"codes": [0] * 4, "shared": 500 * MIB, "last": [1, 2, 3, 4]}


def test_a_full_checkpoint_volume_is_told_and_survived(stories: Told[Ended]) -> None:
    story = stories["fills"]
    assert_unharmed(story.outcome)
    said = facts(story.outcome)
    assert said["full"] == said["saved"] == 5  # of 5 MiB each, in 24 MiB
    assert [one.step for one in story.commits] == [1, 2, 3, 4, 5]
    lines = [json.loads(line) for line in story.seen.splitlines()]
    (told_it,) = [line for line in lines if line["event"] == "the checkpoint volume is full"]
    assert told_it["level"] == "warning"
    assert "podferry.io/checkpoint-size" in told_it["remedy"]


def test_a_pod_that_asks_for_a_gpu_runs(stories: Told[Ended]) -> None:
    story = stories["gpu"]
    assert_unharmed(story.outcome)
    limits = story.outcome.pod.object["spec"]["containers"][0]["resources"]["limits"]
    assert limits["nvidia.com/gpu"] == "1"
