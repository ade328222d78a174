"""Scripts for trainers, flags that release them, and what is expected of their pods."""

from __future__ import annotations

from podferry.webhook.pod.pod_json import GATE, SIDECAR
from tests.cluster.process import ClusterError
from tests.e2e.manifests import TRAINER
from tests.e2e.namespace import Namespace
from tests.e2e.outcome import Outcome

COMMON = """
import json, os, pathlib, signal, subprocess, sys, time
dataset, checkpoints = pathlib.Path("/dev/shm/dataset"), pathlib.Path("/dev/shm/checkpoints")

def say(**facts):
    print(json.dumps(facts), flush=True)

def write(step, count):
    path = checkpoints / f"step-{step}.bin"
    path.with_suffix(".tmp").write_bytes(b"%d" % step * count)
    path.with_suffix(".tmp").replace(path)
    say(wrote=step)

def write_in_place(step, count):
    (checkpoints / f"step-{step}.bin").write_bytes(b"%d" % step * count)
    say(wrote=step)

def status():
    import urllib.request  # the image has no podferry, and the others do not wait for this one
    with urllib.request.urlopen(os.environ["PODFERRY_AGENT"] + "/v1/status", timeout=30) as answer:
        return json.load(answer)["checkpoints"]

def wait_for(name):
    deadline = time.monotonic() + 90
    while not os.path.exists("/tmp/" + name):
        assert time.monotonic() < deadline, name
        time.sleep(0.05)

"""
"""The beginning of a script: `write(step, bytes)` a checkpoint, `wait_for(name)` until `release_trainer`.

`write` renames into place, since a `.bin` does not show its end; one from `write_in_place` is doubtful.
`status()` is what the agent says about checkpoints.
"""


def release_trainer(namespace: Namespace, pod: str, name: str) -> None:
    """Let a trainer that waits for `name` continue.

    It may end, and its container with it, before `touch` has returned: exit code 137 then means that the
    file exists.
    """
    try:
        namespace.exec(pod, TRAINER, "touch", f"/tmp/{name}")
    except ClusterError as error:
        if "exit code 137" not in str(error):
            raise


def assert_unharmed(outcome: Outcome, *others: str) -> None:
    """Every container of the pod succeeded, and none was restarted."""
    assert outcome.succeeded, outcome
    found = {one.name: (one.exit_code, one.restarts) for one in outcome.pod.containers.values()}
    assert found == dict.fromkeys((SIDECAR, *others, GATE, TRAINER), (0, 0)), outcome
