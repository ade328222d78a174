"""Outputs go out at intervals and at the end, however training ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from podferry.contract.destination.output_record import OutputRecord, decode_record, record_name
from podferry.webhook.pod_json import SIDECAR
from tests.e2e.manifests import TRAINER, Object, container, job, pod
from tests.e2e.outcome import Outcome
from tests.e2e.site import Site
from tests.e2e.space import Space
from tests.e2e.stories import Story, Told, told
from tests.e2e.trainers import COMMON, let

EXIT = 3
TABLE = {"table.csv": b"step,loss\n1,0.7\n", "curves/loss.bin": b"l" * 3_000_000}
WRITES = f"""{COMMON}
outputs = pathlib.Path(os.environ["PODFERRY_OUTPUTS"])
say(outputs=str(outputs))
(outputs / "curves").mkdir()
(outputs / "curves" / "loss.bin").write_bytes(b"l" * 3_000_000)
(outputs / "table.csv").write_text("step,loss\\n1,0.7\\n")
"""
GOES_ON = f"""{WRITES}
log = open(outputs / "train.log", "w")
log.write("first\\n")
log.flush()
wait_for("go")
log.write("last\\n")
log.close()
(outputs / "table.csv").unlink()
"""
FAILS = f"{WRITES}sys.exit({EXIT})"
DELETED = f"""
{WRITES}
def end(*_):
    (outputs / "last-words.txt").write_text("told to end")
    os._exit(143)

signal.signal(signal.SIGTERM, end)
say(ready=True)
time.sleep(120)
"""


class Ended(NamedTuple):
    """What became of a pod, and what lies at its destination.

    Attributes:
        outcome: Of the pod, None where it was deleted.
        before: The objects while it trained, by name.
        objects: The same at the end.
        record: Of the agent.
    """

    outcome: Outcome | None
    before: dict[str, bytes]
    objects: dict[str, bytes]
    record: OutputRecord


def found(space: Space, name: str) -> dict[str, bytes]:
    """The objects of one training's outputs, by the trainer's names; podferry's own left out."""
    prefix = f"outputs/{name}/"
    keys = [key for key in space.bucket.objects(prefix) if "/.podferry/" not in key]
    return {key.removeprefix(prefix): space.bucket.read(key) for key in keys}


def record(space: Space, name: str) -> OutputRecord:
    key = f"outputs/{name}/{record_name(1, None)}"
    return decode_record(space.bucket.read(key), key)


def trainer(space: Space, name: str, script: str, **values: str | int) -> Object:
    wishes = space.wishes(outputs=space.bucket.uri(f"outputs/{name}"), output_size="8Mi", **values)
    return pod(name, container(script=script), annotations=wishes)


def at_intervals(space: Space) -> Ended:
    """A trainer that is seen through its outputs while it trains."""
    thing = trainer(space, "often", GOES_ON, outputs_every="1s")
    space.start(thing)
    space.until_container(thing, TRAINER)
    space.until("the log to be there", lambda: found(space, "often").get("train.log"), 60)
    space.until("all to be there", lambda: len(found(space, "often")) == len(TABLE) + 1, 60)
    before = found(space, "often")
    let(space, "often", "go")
    outcome = space.outcome(thing)
    return Ended(outcome, before, found(space, "often"), record(space, "often"))


def fails(space: Space) -> Ended:
    """In a Job, where the pod's own place is told by a variable."""
    wishes = space.wishes(outputs=space.bucket.uri("outputs/$(job)"), output_size="8Mi")
    thing = job("fails", container(script=FAILS), annotations=wishes)
    outcome = space.run(thing, 120)
    return Ended(outcome, {}, found(space, "fails"), record(space, "fails"))


def deleted(space: Space) -> Ended:
    thing = trainer(space, "deleted", DELETED)
    space.start(thing)
    space.until_logged(thing, TRAINER, "ready", timeout=90)
    before = found(space, "deleted")
    space.delete(thing)
    return Ended(None, before, found(space, "deleted"), record(space, "deleted"))


STORIES: dict[str, Story[Ended]] = {"often": at_intervals, "fails": fails, "deleted": deleted}


@pytest.fixture(scope="module")
def stories(site: Site) -> Iterator[Told[Ended]]:
    with told(site, STORIES) as ended:
        yield ended


def test_outputs_are_there_while_training_goes_on(stories: Told[Ended]) -> None:
    assert stories["often"].before == {**TABLE, "train.log": b"first\n"}


def test_at_the_end_they_are_as_the_trainer_left_them(stories: Told[Ended]) -> None:
    """What it has deleted stays at the destination."""
    story = stories["often"]
    assert story.outcome is not None
    assert story.outcome.succeeded, story.outcome
    assert story.objects == {**TABLE, "train.log": b"first\nlast\n"}
    assert (story.record.files, story.record.problems) == (2, ())
    assert story.record.ended_at is not None


def test_a_training_that_fails_leaves_its_outputs(stories: Told[Ended]) -> None:
    story = stories["fails"]
    assert story.outcome is not None
    assert (story.outcome.phase, story.outcome[TRAINER].exit_code) == ("Failed", EXIT), story.outcome
    assert story.objects == TABLE
    assert (story.record.files, story.record.bytes) == (2, sum(map(len, TABLE.values())))
    assert story.record.ended_at is not None
    sidecar = story.outcome[SIDECAR]
    assert (sidecar.exit_code, sidecar.restarts, sidecar.message) == (0, 0, "")


def test_a_deleted_pod_sends_what_its_trainer_writes_last(stories: Told[Ended]) -> None:
    story = stories["deleted"]
    assert story.before == {}, "without an interval nothing goes before the end"
    assert story.objects == {**TABLE, "last-words.txt": b"told to end"}


def test_the_trainer_is_told_where(stories: Told[Ended]) -> None:
    story = stories["fails"]
    assert story.outcome is not None
    said = json.loads(story.outcome[TRAINER].log.splitlines()[0])
    assert said == {"outputs": "/dev/shm/outputs"}
