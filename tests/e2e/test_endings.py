"""A pod whose grace period is too short: the newest checkpoint is uploaded first, the rest is named, the
next pod waits.

Also a pod that its node evicts.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest

from podferry.contract.destination.agent_notes import NOTES, AgentNote, DrainPhase, decode_note
from podferry.contract.destination.commit import Commit
from podferry.webhook.pod.pod_json import SIDECAR
from tests.cluster.node import Node
from tests.e2e.manifests import TRAINER, Object, container, pod
from tests.e2e.namespace import Namespace
from tests.e2e.outcome import Outcome, PodOutcome
from tests.e2e.site import Site
from tests.e2e.store_proxy import store_proxy
from tests.e2e.trainers import COMMON

MIB = 1 << 20
ENDPOINT = "podferry.io/endpoint"
GRACE = 20
"""Seconds. At 1 MiB a second one checkpoint of 9 MiB fits into it, and no second one."""
WAITS = "waiting for a previous agent to drain"
SIZE = 9 * MIB
SAVES = 3
LOOKED_AT = "e2e.podferry.io/looked-at"
"""A finalizer: a deleted pod stays until this is removed."""
DIES_AT_ONCE = "signal.signal(signal.SIGTERM, lambda *_: os._exit(143))"
BACKLOG = f"""{COMMON}
{DIES_AT_ONCE}
for step in range(1, {SAVES + 1}):
    write(step, {SIZE})
say(done=True)
time.sleep(120)
"""
FINDS = f"""{COMMON}
say(**{{path.name: [path.stat().st_size, chr(path.read_bytes()[0])] for path in checkpoints.iterdir()}})
"""
HOGS = f"""{COMMON}
{DIES_AT_ONCE}
for step in (1, 2):
    write(step, {MIB})
hog = bytearray(b"x") * {512 * MIB}
say(done=True)
time.sleep(120)
"""
PRESSURE = {
    "evictionSoft": {"memory.available": "99.9%"},
    "evictionSoftGracePeriod": {"memory.available": "1s"},
    "evictionMaxPodGracePeriod": GRACE,
    "evictionPressureTransitionPeriod": "1s",
}
"""A kubelet's settings under which nearly all memory must be free; it takes 100% for no threshold."""


class Result(NamedTuple):
    """The result of a scenario.

    Attributes:
        pod: The pod at its end.
        log: The sidecar's, to its last line.
        commits: Of its lineage, and their bytes by name.
        notes: What agents left about their end.
        next: The outcome of a pod that was created while this one drained.
    """

    pod: PodOutcome
    log: str
    commits: list[Commit]
    files: list[dict[str, bytes]]
    notes: list[AgentNote]
    next: Outcome | None = None


def collect_result(namespace: Namespace, manifest: Object, log: str) -> Result:
    lineage = manifest["metadata"]["name"]
    commits, notes = namespace.bucket.commits(lineage), notes_of(namespace, lineage)
    one = namespace.get("pod", lineage)
    return Result(
        PodOutcome(one, {}), log, commits, [namespace.bucket.committed(each) for each in commits], notes
    )


def notes_of(namespace: Namespace, lineage: str) -> list[AgentNote]:
    keys = namespace.bucket.objects(f"checkpoints/{lineage}/{NOTES}/")
    return [decode_note(namespace.bucket.read(key), key) for key in keys]


def events(log: str) -> list[dict[str, Any]]:
    """The entries of an agent's log."""
    return [json.loads(line) for line in log.splitlines() if line.startswith("{")]


@contextlib.contextmanager
def kept(namespace: Namespace, manifest: Object) -> Iterator[None]:
    """Start a pod that stays after its deletion until the block ends."""
    namespace.start({**manifest, "metadata": {**manifest["metadata"], "finalizers": [LOOKED_AT]}})
    try:
        yield
    finally:
        patch = '{"metadata": {"finalizers": null}}'
        namespace.kubectl("patch", "pod", manifest["metadata"]["name"], "--type=merge", "-p", patch)


@pytest.fixture(scope="module")
def deleted(site: Site) -> Iterator[Result]:
    """A pod is deleted when its trainer has just written more than its grace period can upload."""
    name = "short"
    with site.namespace() as namespace, ThreadPoolExecutor(1) as pool:
        annotations = namespace.training_annotations(
            lineage=name, checkpoint_size="10Mi", grace=GRACE, upload_limit="1Mi"
        )
        trainer = container(script=BACKLOG)
        manifest = pod(name, trainer, annotations=annotations, terminationGracePeriodSeconds=GRACE)
        later = pod("next", container(script=FINDS), annotations=annotations)
        with kept(namespace, manifest):
            namespace.until_logged(manifest, TRAINER, "done", timeout=90)
            log = pool.submit(namespace.ask, "logs", "-f", name, "-c", SIDECAR, timeout=120)
            namespace.kubectl("delete", "pod", name, "--wait=false")
            namespace.until("the drain to begin", lambda: notes_of(namespace, name), 60)
            namespace.start(later)
            namespace.until_container(manifest, SIDECAR, "terminated")
            result = collect_result(namespace, manifest, log.result().output)
        yield result._replace(next=namespace.outcome(later))


def test_the_newest_checkpoint_is_uploaded_first(deleted: Result) -> None:
    assert [one.step for one in deleted.commits] == [SAVES], deleted.log
    assert deleted.files == [{f"step-{SAVES}.bin": b"%d" % SAVES * SIZE}]


def test_the_log_names_what_could_not_be_uploaded(deleted: Result) -> None:
    [entry] = [one for one in events(deleted.log) if one["event"] == "not durable at the end"]
    assert entry["level"] == "error"
    assert entry["checkpoints"] == ["step-1", "step-2"]
    assert any("podferry.io/grace" in reason for reason in entry["reasons"])


def test_the_termination_message_names_what_could_not_be_uploaded(deleted: Result) -> None:
    sidecar = deleted.pod[SIDECAR]
    assert sidecar.exit_code == 0
    assert sidecar.message.splitlines()[0] == "podferry: not durable at the end: step-1, step-2"


def test_a_note_at_the_destination_names_what_could_not_be_uploaded(deleted: Result) -> None:
    [note] = deleted.notes
    assert (note.phase, note.pending) == (DrainPhase.ENDED, ("step-1", "step-2"))
    assert note.agent_id == deleted.commits[0].agent_id


def test_a_pod_created_meanwhile_waits_and_resumes_from_the_newest(deleted: Result) -> None:
    assert deleted.next is not None
    assert deleted.next.succeeded, deleted.next
    log = events(deleted.next[SIDECAR].log)
    assert [one["event"] for one in log if one["event"].startswith("waiting")] == [WAITS]
    [left] = [
        one["checkpoints"]
        for one in log
        if one["event"] == "a previous agent left checkpoints that are not durable"
    ]
    assert left == ["step-1", "step-2"]
    assert json.loads(deleted.next[TRAINER].log) == {f"step-{SAVES}.bin": [SIZE, str(SAVES)]}


@pytest.fixture(scope="module")
def evicted(site: Site) -> Iterator[Result]:
    """A pod is evicted before any of its checkpoints is uploaded."""
    name, node = "evicted", site.cluster.backend
    if not isinstance(node, Node):
        pytest.skip("the kubelet of this cluster is not the harness's to set")
    with (
        site.namespace() as namespace,
        store_proxy(site.cluster, site.bucket, "PUT /e2e/checkpoints/*step-*") as proxy,
        ThreadPoolExecutor(1) as pool,
    ):
        annotations = namespace.training_annotations(lineage=name) | {ENDPOINT: proxy.endpoint}
        manifest = pod(name, container(script=HOGS), annotations=annotations)
        namespace.start(manifest)
        namespace.until_logged(manifest, TRAINER, "done", timeout=90)
        proxy.until_held("step-1")
        log = pool.submit(namespace.ask, "logs", "-f", name, "-c", SIDECAR, timeout=120)
        with node.kubelet(PRESSURE):
            namespace.until("the drain to begin", lambda: notes_of(namespace, name), 60)
            proxy.release()
            outcome = namespace.outcome(manifest)
        assert outcome.reason == "Evicted", outcome
        yield collect_result(namespace, manifest, log.result().output)


def test_a_pod_that_is_evicted_leaves_its_checkpoints(evicted: Result) -> None:
    assert [one.step for one in evicted.commits] == [1, 2], evicted.log
    assert evicted.files == [{f"step-{step}.bin": b"%d" % step * MIB} for step in (1, 2)]
    assert [(note.phase, note.pending) for note in evicted.notes] == [(DrainPhase.ENDED, ())]


def test_the_pod_was_evicted_for_memory(evicted: Result) -> None:
    assert "low on resource: memory" in evicted.pod.object["status"]["message"]
