"""A pod whose end is too short: its newest checkpoint goes first, the rest is named, the next pod waits.

And a pod that its node evicts.
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
from podferry.webhook.pod_json import SIDECAR
from tests.cluster.node import Node
from tests.e2e.door import door
from tests.e2e.manifests import TRAINER, Object, container, pod
from tests.e2e.outcome import Outcome, PodOutcome
from tests.e2e.site import Site
from tests.e2e.space import Space
from tests.e2e.trainers import COMMON

MIB = 1 << 20
ENDPOINT = "podferry.io/endpoint"
GRACE = 20
"""Seconds. At 1 MiB a second one checkpoint of 9 MiB fits into it, and no second one."""
WAITS = "waiting for a previous agent to drain"
SIZE = 9 * MIB
SAVES = 3
LOOKED_AT = "e2e.podferry.io/looked-at"
"""A finalizer: a deleted pod stays until it is taken away."""
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


class Ended(NamedTuple):
    """How a story has ended.

    Attributes:
        pod: With all that its sidecar wrote.
        log: The sidecar's, to its last line.
        commits: Of its lineage, and their bytes by name.
        notes: What agents left about their end.
        next: What became of a pod that was made while this one drained.
    """

    pod: PodOutcome
    log: str
    commits: list[Commit]
    files: list[dict[str, bytes]]
    notes: list[AgentNote]
    next: Outcome | None = None


def ended(space: Space, thing: Object, log: str) -> Ended:
    lineage = thing["metadata"]["name"]
    commits, notes = space.bucket.commits(lineage), notes_of(space, lineage)
    one = space.get("pod", lineage)
    return Ended(PodOutcome(one, {}), log, commits, [space.bucket.committed(each) for each in commits], notes)


def notes_of(space: Space, lineage: str) -> list[AgentNote]:
    keys = space.bucket.objects(f"checkpoints/{lineage}/{NOTES}/")
    return [decode_note(space.bucket.read(key), key) for key in keys]


def events(log: str) -> list[dict[str, Any]]:
    """What an agent wrote, line by line."""
    return [json.loads(line) for line in log.splitlines() if line.startswith("{")]


@contextlib.contextmanager
def kept(space: Space, thing: Object) -> Iterator[None]:
    """Start a pod that stays after its deletion until the block ends."""
    space.start({**thing, "metadata": {**thing["metadata"], "finalizers": [LOOKED_AT]}})
    try:
        yield
    finally:
        patch = '{"metadata": {"finalizers": null}}'
        space.kubectl("patch", "pod", thing["metadata"]["name"], "--type=merge", "-p", patch)


@pytest.fixture(scope="module")
def deleted(site: Site) -> Iterator[Ended]:
    """A pod is deleted when its trainer has just written more than can go out in its grace."""
    name = "short"
    with site.namespace() as space, ThreadPoolExecutor(1) as pool:
        wishes = space.training(lineage=name, checkpoint_size="10Mi", grace=GRACE, upload_limit="1Mi")
        trainer = container(script=BACKLOG)
        thing = pod(name, trainer, annotations=wishes, terminationGracePeriodSeconds=GRACE)
        later = pod("next", container(script=FINDS), annotations=wishes)
        with kept(space, thing):
            space.until_logged(thing, TRAINER, "done", timeout=90)
            log = pool.submit(space.ask, "logs", "-f", name, "-c", SIDECAR, timeout=120)
            space.kubectl("delete", "pod", name, "--wait=false")
            space.start(later)
            space.until_container(thing, SIDECAR, "terminated")
            story = ended(space, thing, log.result().output)
        yield story._replace(next=space.outcome(later))


def test_the_newest_checkpoint_goes_first(deleted: Ended) -> None:
    assert [one.step for one in deleted.commits] == [SAVES], deleted.log
    assert deleted.files == [{f"step-{SAVES}.bin": b"%d" % SAVES * SIZE}]


def test_what_could_not_go_is_named_in_the_log(deleted: Ended) -> None:
    [said] = [one for one in events(deleted.log) if one["event"] == "not durable at the end"]
    assert said["level"] == "error"
    assert said["checkpoints"] == ["step-1", "step-2"]
    assert any("podferry.io/grace" in reason for reason in said["reasons"])


def test_kubernetes_is_told_what_could_not_go(deleted: Ended) -> None:
    sidecar = deleted.pod[SIDECAR]
    assert sidecar.exit_code == 0
    assert sidecar.message.splitlines()[0] == "podferry: not durable at the end: step-1, step-2"


def test_a_note_at_the_destination_names_what_could_not_go(deleted: Ended) -> None:
    [note] = deleted.notes
    assert (note.phase, note.pending) == (DrainPhase.ENDED, ("step-1", "step-2"))
    assert note.agent_id == deleted.commits[0].agent_id


def test_a_pod_that_is_made_meanwhile_waits_and_resumes_from_the_newest(deleted: Ended) -> None:
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
def evicted(site: Site) -> Iterator[Ended]:
    """A pod is evicted while none of its checkpoints has gone out."""
    name, node = "evicted", site.cluster.backend
    if not isinstance(node, Node):
        pytest.skip("the kubelet of this cluster is not the harness's to set")
    with (
        site.namespace() as space,
        door(site.cluster, site.bucket, "PUT /e2e/checkpoints/*step-*") as closed,
        ThreadPoolExecutor(1) as pool,
    ):
        wishes = space.training(lineage=name) | {ENDPOINT: closed.endpoint}
        thing = pod(name, container(script=HOGS), annotations=wishes)
        space.start(thing)
        space.until_logged(thing, TRAINER, "done", timeout=90)
        closed.until_held("step-1")
        log = pool.submit(space.ask, "logs", "-f", name, "-c", SIDECAR, timeout=120)
        with node.kubelet(PRESSURE):
            space.until("the drain to begin", lambda: notes_of(space, name), 60)
            closed.open()
            outcome = space.outcome(thing)
        assert outcome.reason == "Evicted", outcome
        yield ended(space, thing, log.result().output)


def test_a_pod_that_is_evicted_leaves_its_checkpoints(evicted: Ended) -> None:
    assert [one.step for one in evicted.commits] == [1, 2], evicted.log
    assert evicted.files == [{f"step-{step}.bin": b"%d" % step * MIB} for step in (1, 2)]
    assert [(note.phase, note.pending) for note in evicted.notes] == [(DrainPhase.ENDED, ())]


def test_it_was_memory_that_the_node_lacked(evicted: Ended) -> None:
    assert "low on resource: memory" in evicted.pod.object["status"]["message"]
