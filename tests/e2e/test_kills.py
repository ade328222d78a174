"""The last checkpoint becomes durable if the trainer, the pod or the worker is killed, in any phase."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import pytest

from podferry.contract.destination.commit import Commit
from podferry.webhook.pod.pod_json import GATE, SIDECAR
from tests.e2e.manifests import TRAINER, Object, container, job, pod
from tests.e2e.namespace import Namespace
from tests.e2e.outcome import Outcome
from tests.e2e.scenarios import Scenario, Scenarios, start_scenarios
from tests.e2e.site import Site
from tests.e2e.store_proxy import store_proxy
from tests.e2e.trainers import COMMON, assert_unharmed, release_trainer

MIB = 1 << 20
ENDPOINT = "podferry.io/endpoint"
GRACE = 15
"""Seconds that a deleted pod has; a trainer that ignores SIGTERM uses them all."""
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
write_in_place(1, {MIB})
hog = []
while True:
    hog.append(bytearray(b"x") * {8 * MIB})
"""
FAILS = f"""{COMMON}
write_in_place(1, {MIB})
sys.exit(3)
"""
BACKLOG = f"""
for step in (1, 2, 3):
    write(step, {4 * MIB})
say(done=True)
time.sleep(120)
"""
EXITS_AT_ONCE = "signal.signal(signal.SIGTERM, lambda *_: os._exit(143))"
IGNORES_SIGTERM = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
FAILS_ONCE = f"""{COMMON}
if not (checkpoints / "step-1.bin").exists():
    write_in_place(1, {MIB})
    wait_for("go")
    sys.exit(1)
write_in_place(2, {MIB})
"""
KILL = """
import os, pathlib, signal, urllib.request
print(urllib.request.urlopen(os.environ["PODFERRY_AGENT"] + "/v1/status", timeout=60).read().decode())
for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    if b"--worker" in path.read_bytes().split(b"\\0"):
        os.kill(int(path.parent.name), signal.SIGKILL)
"""
"""Prints the agent's status and kills its worker; runs in the sidecar."""


class Result(NamedTuple):
    """The result of a scenario.

    Attributes:
        outcome: Of its pod or Job.
        commits: Of its lineage, and their bytes by name.
        phase: The agent's phase when its worker was killed; empty if it was not.
    """

    outcome: Outcome
    commits: list[Commit]
    files: list[dict[str, bytes]]
    phase: str = ""


class Kill(NamedTuple):
    """When a worker is killed.

    Attributes:
        phase: The phase that the agent must report then.
        held: The request that is held until it is dead.
        before: Whether the trainer writes its checkpoint before that.
    """

    phase: str
    held: str
    before: bool = False


KILLS = {
    "planning": Kill("planning", "GET /e2e[?/]*prefix=datasets*"),
    "restoring": Kill("restoring", "GET /e2e/checkpoints/*/step-1.bin *"),
    "prefetching": Kill("prefetching", "GET /e2e/datasets/kills/d.bin *"),
    "open": Kill("open", ""),
    "uploading": Kill("open", "PUT /e2e/checkpoints/*/step-2.bin*", before=True),
}


def collect_result(
    namespace: Namespace, manifest: Object, lineage: str, phase: str = "", timeout: float = 120
) -> Result:
    outcome = namespace.outcome(manifest, timeout)
    commits = namespace.bucket.commits(lineage)
    return Result(outcome, commits, [namespace.bucket.committed(one) for one in commits], phase)


def kill(namespace: Namespace, name: str) -> str:
    """Kill the agent's worker; return the phase that it was in."""
    phase: str = json.loads(namespace.exec(name, SIDECAR, "python3", "-c", KILL))["stage"]
    return phase


def worker_killed(name: str, namespace: Namespace) -> Result:
    what = KILLS[name]
    if name == "restoring":
        namespace.run(writer("earlier", "restoring", namespace), 120)
    with store_proxy(namespace.cluster, namespace.bucket, *([what.held] if what.held else [])) as proxy:
        annotations = namespace.training_annotations(namespace.bucket.uri("datasets/kills"), lineage=name)
        annotations |= {ENDPOINT: proxy.endpoint}
        manifest = pod(name, container(script=UNDER_KILLS), annotations=annotations)
        namespace.start(manifest)
        if name in {"open", "uploading"}:
            namespace.until_container(manifest, TRAINER, timeout=120)
        if what.before:
            release_trainer(namespace, name, "go")
        if what.held:
            proxy.until_held()
        phase = kill(namespace, name)
        proxy.release()
        namespace.until_container(manifest, TRAINER, timeout=120)
        release_trainer(namespace, name, "go")
        namespace.until_logged(manifest, TRAINER, "wrote")
        release_trainer(namespace, name, "end")
        return collect_result(namespace, manifest, name, phase)


def writer(name: str, lineage: str, namespace: Namespace) -> Object:
    script = f"{COMMON}\nwrite(1, {MIB})"
    return pod(name, container(script=script), annotations=namespace.training_annotations(lineage=lineage))


def trainer_dies(script: str, name: str, namespace: Namespace) -> Result:
    limits = {"limits": {"memory": "64Mi"}}
    manifest = pod(
        name,
        container(script=script, resources=limits),
        annotations=namespace.training_annotations(lineage=name),
    )
    namespace.start(manifest)
    return collect_result(namespace, manifest, name)


def deleted(handler: str, name: str, namespace: Namespace) -> Result:
    """A pod is deleted before any checkpoint is uploaded; from then on they upload at 4 MiB/s."""
    with store_proxy(namespace.cluster, namespace.bucket, "PUT /e2e/checkpoints/*step-*") as proxy:
        annotations = namespace.training_annotations(lineage=name, grace=GRACE) | {ENDPOINT: proxy.endpoint}
        trainer = container(script=COMMON + handler + BACKLOG)
        manifest = pod(name, trainer, annotations=annotations, terminationGracePeriodSeconds=GRACE)
        namespace.start(manifest)
        namespace.until_logged(manifest, TRAINER, "done", timeout=120)
        proxy.until_held("step-1")
        assert namespace.bucket.commits(name) == []
        outcome = namespace.pod(manifest)
        namespace.kubectl("delete", "pod", name, "--wait=false")
        proxy.throttle(4 * MIB)
        namespace.cluster.wait(f"pod/{name}", "delete", namespace=namespace.name)
    commits = namespace.bucket.commits(name)
    files = [namespace.bucket.committed(one) for one in commits]
    return Result(Outcome("Deleted", "", "", (outcome,)), commits, files)


def job_on_failure(namespace: Namespace) -> Result:
    manifest = job(
        "on-failure",
        container(script=FAILS_ONCE),
        annotations=namespace.training_annotations(),
        backoff=3,
        restartPolicy="OnFailure",
    )
    namespace.start(manifest)
    namespace.until_logged(manifest, TRAINER, "wrote", timeout=120)
    name = namespace.pod(manifest).name
    phase = kill(namespace, name)
    release_trainer(namespace, name, "go")
    return collect_result(namespace, manifest, namespace.lineage("on-failure"), phase)


SCENARIOS: dict[str, Scenario[Result]] = {
    **{name: partial(worker_killed, name) for name in KILLS},
    "out-of-memory": partial(trainer_dies, OUT_OF_MEMORY, "out-of-memory"),
    "fails": partial(trainer_dies, FAILS, "fails"),
    "deleted": partial(deleted, EXITS_AT_ONCE, "deleted"),
    "deleted-ignoring": partial(deleted, IGNORES_SIGTERM, "deleted-ignoring"),
    "on-failure": job_on_failure,
}


@pytest.fixture(scope="module")
def results(site: Site) -> Iterator[Scenarios[Result]]:
    site.upload_dataset("kills", FILES)
    with start_scenarios(site, SCENARIOS) as found:
        yield found


@pytest.mark.parametrize("name", KILLS)
def test_the_trainer_never_notices_that_the_worker_was_killed(results: Scenarios[Result], name: str) -> None:
    result = results[name]
    outcome = result.outcome
    assert result.phase == KILLS[name].phase
    assert_unharmed(outcome)
    assert "the worker exited with -9" in outcome[SIDECAR].log
    data, found, *_ = map(json.loads, outcome[TRAINER].log.splitlines())
    assert data == {"data": SEEN}
    restored = ["step-1.bin"] if name == "restoring" else []
    assert found == {"found": restored}
    assert [one.step for one in result.commits] == [1, 2][-1 - len(restored) :]
    assert result.files[-1] == {"step-2.bin": b"2" * MIB}


def test_a_killed_prefetch_keeps_complete_files(results: Scenarios[Result]) -> None:
    gate = results["prefetching"].outcome[GATE]
    assert f"{len(FILES) - 1} of them kept" in gate.log


def test_the_checkpoint_of_a_trainer_that_is_oom_killed_is_durable(results: Scenarios[Result]) -> None:
    result = results["out-of-memory"]
    assert (result.outcome.phase, result.outcome[TRAINER].reason) == ("Failed", "OOMKilled"), result.outcome
    assert_durable_and_doubtful(result)


def test_the_checkpoint_of_a_trainer_that_fails_is_durable(results: Scenarios[Result]) -> None:
    result = results["fails"]
    assert (result.outcome.phase, result.outcome[TRAINER].exit_code) == ("Failed", 3), result.outcome
    assert_durable_and_doubtful(result)


@pytest.mark.parametrize("name", ["deleted", "deleted-ignoring"])
def test_a_deleted_pod_sends_its_backlog(results: Scenarios[Result], name: str) -> None:
    """Also if the trainer uses up the entire grace period, after which the agent has two seconds."""
    result = results[name]
    assert result.files == [{f"step-{step}.bin": b"%d" % step * 4 * MIB} for step in (1, 2, 3)]
    assert [one.step for one in result.commits] == [1, 2, 3]


def test_a_job_on_failure_survives_its_trainers_and_its_workers_end(results: Scenarios[Result]) -> None:
    result = results["on-failure"]
    assert result.outcome.succeeded, result.outcome
    restarts = {one.name: one.restarts for one in result.outcome.pod.containers.values()}
    assert restarts == {SIDECAR: 0, GATE: 0, TRAINER: 1}
    assert len(result.outcome.pods) == 1
    assert [one.step for one in result.commits] == [1, 2]
    assert result.commits[0].is_sure, "2 proves 1"


def assert_durable_and_doubtful(result: Result) -> None:
    """No byte is lost, though a file whose format does not show its end may be torn."""
    sidecar = result.outcome[SIDECAR]
    assert result.files == [{"step-1.bin": b"1" * MIB}]
    assert [one.is_sure for one in result.commits] == [False]
    assert (sidecar.exit_code, sidecar.restarts) == (0, 0)
    assert sidecar.message.startswith("podferry: the last checkpoint, step-1, is doubtful\n")
