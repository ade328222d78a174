"""Outputs are uploaded at intervals and at the end, however training ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from podferry.contract.destination.output_record import OutputRecord, decode_record, record_name
from podferry.webhook.pod.pod_json import SIDECAR
from tests.e2e.manifests import TRAINER, Object, container, job, pod
from tests.e2e.namespace import Namespace
from tests.e2e.outcome import Outcome
from tests.e2e.scenarios import Scenario, Scenarios, start_scenarios
from tests.e2e.site import Site
from tests.e2e.trainers import COMMON, release_trainer

EXIT = 3
TABLE = {"table.csv": b"step,loss\n1,0.7\n", "curves/loss.bin": b"l" * 3_000_000}
WRITES = f"""{COMMON}
outputs = pathlib.Path(os.environ["PODFERRY_OUTPUTS"])
say(outputs=str(outputs))
(outputs / "curves").mkdir()
(outputs / "curves" / "loss.bin").write_bytes(b"l" * 3_000_000)
(outputs / "table.csv").write_text("step,loss\\n1,0.7\\n")
"""
CONTINUES = f"""{WRITES}
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
    (outputs / "last-words.txt").write_text("terminated")
    os._exit(143)

signal.signal(signal.SIGTERM, end)
say(ready=True)
time.sleep(120)
"""


class Result(NamedTuple):
    """The outcome of a pod, and the objects at its destination.

    Attributes:
        outcome: Of the pod, or None if it was deleted.
        before: The objects while it trained, by name.
        objects: The same at the end.
        record: Of the agent.
    """

    outcome: Outcome | None
    before: dict[str, bytes]
    objects: dict[str, bytes]
    record: OutputRecord


def found(namespace: Namespace, name: str) -> dict[str, bytes]:
    """The objects of one run's outputs, by the trainer's names, without podferry's own."""
    prefix = f"outputs/{name}/"
    keys = [key for key in namespace.bucket.objects(prefix) if "/.podferry/" not in key]
    return {key.removeprefix(prefix): namespace.bucket.read(key) for key in keys}


def record(namespace: Namespace, name: str) -> OutputRecord:
    key = f"outputs/{name}/{record_name(1, None)}"
    return decode_record(namespace.bucket.read(key), key)


def trainer(namespace: Namespace, name: str, script: str, **values: str | int) -> Object:
    annotations = namespace.store_annotations(
        outputs=namespace.bucket.uri(f"outputs/{name}"), output_size="8Mi", **values
    )
    return pod(name, container(script=script), annotations=annotations)


def at_intervals(namespace: Namespace) -> Result:
    """A trainer whose outputs are read while it trains."""
    manifest = trainer(namespace, "often", CONTINUES, outputs_every="1s")
    namespace.start(manifest)
    namespace.until_container(manifest, TRAINER)
    namespace.until("the log to be there", lambda: found(namespace, "often").get("train.log"), 60)
    namespace.until("all to be there", lambda: len(found(namespace, "often")) == len(TABLE) + 1, 60)
    before = found(namespace, "often")
    release_trainer(namespace, "often", "go")
    outcome = namespace.outcome(manifest)
    return Result(outcome, before, found(namespace, "often"), record(namespace, "often"))


def fails(namespace: Namespace) -> Result:
    """In a Job; `$(job)` in the URI is its name."""
    annotations = namespace.store_annotations(
        outputs=namespace.bucket.uri("outputs/$(job)"), output_size="8Mi"
    )
    manifest = job("fails", container(script=FAILS), annotations=annotations)
    outcome = namespace.run(manifest, 120)
    return Result(outcome, {}, found(namespace, "fails"), record(namespace, "fails"))


def deleted(namespace: Namespace) -> Result:
    manifest = trainer(namespace, "deleted", DELETED)
    namespace.start(manifest)
    namespace.until_logged(manifest, TRAINER, "ready", timeout=90)
    before = found(namespace, "deleted")
    namespace.delete(manifest)
    return Result(None, before, found(namespace, "deleted"), record(namespace, "deleted"))


SCENARIOS: dict[str, Scenario[Result]] = {"often": at_intervals, "fails": fails, "deleted": deleted}


@pytest.fixture(scope="module")
def results(site: Site) -> Iterator[Scenarios[Result]]:
    with start_scenarios(site, SCENARIOS) as found:
        yield found


def test_outputs_are_uploaded_during_training(results: Scenarios[Result]) -> None:
    assert results["often"].before == {**TABLE, "train.log": b"first\n"}


def test_final_outputs_are_as_the_trainer_left_them(results: Scenarios[Result]) -> None:
    """What it has deleted stays at the destination."""
    result = results["often"]
    assert result.outcome is not None
    assert result.outcome.succeeded, result.outcome
    assert result.objects == {**TABLE, "train.log": b"first\nlast\n"}
    assert (result.record.files, result.record.problems) == (2, ())
    assert result.record.ended_at is not None


def test_a_failed_run_leaves_its_outputs(results: Scenarios[Result]) -> None:
    result = results["fails"]
    assert result.outcome is not None
    assert (result.outcome.phase, result.outcome[TRAINER].exit_code) == ("Failed", EXIT), result.outcome
    assert result.objects == TABLE
    assert (result.record.files, result.record.bytes) == (2, sum(map(len, TABLE.values())))
    assert result.record.ended_at is not None
    sidecar = result.outcome[SIDECAR]
    assert (sidecar.exit_code, sidecar.restarts, sidecar.message) == (0, 0, "")


def test_a_deleted_pod_sends_what_its_trainer_writes_last(results: Scenarios[Result]) -> None:
    result = results["deleted"]
    assert result.before == {}, "without an interval nothing goes before the end"
    assert result.objects == {**TABLE, "last-words.txt": b"terminated"}


def test_a_variable_names_the_output_directory(results: Scenarios[Result]) -> None:
    result = results["fails"]
    assert result.outcome is not None
    printed = json.loads(result.outcome[TRAINER].log.splitlines()[0])
    assert printed == {"outputs": "/dev/shm/outputs"}
