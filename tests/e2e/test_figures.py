"""What podferry costs: measured, compared with the memory sum, and recorded."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from jsonpatch import apply_patch

from podferry.contract.tmpfs_cost import allocated_bytes
from podferry.webhook.cluster.signing_keys import KEY_BYTES
from podferry.webhook.injection.inject import inject
from podferry.webhook.pod.namespace import Namespace as PodNamespace
from podferry.webhook.pod.stamp import Signer
from tests.e2e import install
from tests.e2e.constant_webhook import constant_webhook
from tests.e2e.figures import Figures
from tests.e2e.manifests import TRAINER, Object, container, job, pod
from tests.e2e.measuring import agent_status, charged, creation_times, processes, summary
from tests.e2e.namespace import Namespace
from tests.e2e.outcome import Outcome, PodOutcome, moment
from tests.e2e.site import Site

MIB = 1 << 20
FILES, FILE = 16, 16 * MIB
CHECKPOINT = 64 * MIB
NEAR = 0.10
"""How far a measured figure may be from a computed one."""

WRITE = f"""
import os, pathlib
def write(name):
    path = pathlib.Path("/dev/shm/checkpoints", name)
    with path.with_suffix(".tmp").open("wb") as file:
        for _ in range({CHECKPOINT // MIB}):
            file.write(os.urandom({MIB}))
    path.with_suffix(".tmp").rename(path)
"""
TRAIN = f"""{WRITE}
import time
started, total = time.monotonic(), 0
for file in pathlib.Path("/dev/shm/dataset").iterdir():
    with file.open("rb") as opened:
        while block := opened.read({MIB}):
            total += len(block)
assert total == {FILES * FILE}
print("read", total / (time.monotonic() - started) / 1e6, "MB/s")
write("epoch-2.bin")
deadline = time.monotonic() + 600
while not pathlib.Path("/tmp/go").exists() and time.monotonic() < deadline:
    time.sleep(0.1)
"""


NOBODYS = {"schedulerName": "nobody"}
"""Created, and then left alone by scheduler and kubelet, which would take CPU time from the next creation."""


def test_admission_is_fast_and_costs_other_pods_nothing(site: Site, figures: Figures) -> None:
    """The time of the API server's create: with podferry, with a stand-in for it, with neither.

    Without a webhook also for the pods that podferry makes: storing the larger object takes time, too.
    """
    times: dict[str, list[float]] = defaultdict(list)

    def measure(namespace: Namespace, suffix: str, *cases: str, **more: Object) -> None:
        made = {**_cases(namespace), **more}
        found = creation_times(namespace, {f"{one}, {suffix}": made[one] for one in cases})
        for name, each in found.items():
            times[name] += each

    for _ in range(2):
        with site.namespace() as namespace:
            measure(namespace, "podferry", "opted in", "other")
        with site.namespace() as namespace, install.not_registered(site.cluster):
            received = _received(namespace)
            patch = _patch(site, namespace, received)
            injected = _patched(received, patch)
            measure(namespace, "not registered", "opted in", "other", "injected", injected=injected)
        with site.namespace() as namespace, constant_webhook(namespace, patch):
            measure(namespace, "constant patch", "opted in")
    figures.record("API create, one at a time", {name: summary(found) for name, found in times.items()})
    assert summary(times["opted in, podferry"])["p95_ms"] < 1000


def _cases(namespace: Namespace) -> dict[str, Object]:
    one, annotations = container(command=["true"]), namespace.training_annotations("s3://e2e/x")
    return {
        "opted in": pod("in", one, annotations=annotations, **NOBODYS),
        "other": pod("not", one, **NOBODYS),
    }


def _received(namespace: Namespace) -> Object:
    """The pod that opts in as the API server sends it to a webhook."""
    words = ("create", "--dry-run=server", "-o", "json", "-f", "-")
    answer: Object = json.loads(namespace.kubectl(*words, stdin=json.dumps(_cases(namespace)["opted in"])))
    return answer


def _patch(site: Site, namespace: Namespace, received: Object) -> Sequence[dict[str, Any]]:
    """What podferry changes in a pod."""
    signer = Signer((b"k" * KEY_BYTES,), 1)
    return inject(received, PodNamespace(namespace.name), install.policy_of(site.cluster), signer).patch


def _patched(received: Object, patch: Sequence[dict[str, Any]]) -> Object:
    """The pod that podferry makes, as its author would have to write it."""
    made = apply_patch(received, list(patch))
    kept = {name: made["metadata"][name] for name in ("labels", "annotations") if name in made["metadata"]}
    return {**made, "metadata": {**kept, "name": "injected"}, "status": {}}


def test_memory_matches_the_computed_sum(
    site: Site, namespace: Namespace, figures: Figures, tmp_path: Path
) -> None:
    """A pod that has fetched, restored and written is measured while it runs."""
    files = {f"{number:02}.bin": bytes([number]) * FILE for number in range(FILES)}
    data = site.upload_dataset("figures", files)
    sizes: Any = {"checkpoint_size": CHECKPOINT, "shm_size": "64Mi"}
    seed = job(
        "figures",
        container(script=f"{WRITE}\nwrite('epoch-1.bin')"),
        annotations=namespace.training_annotations(**sizes),
    )
    assert (first := namespace.run(seed)).succeeded, first
    namespace.delete(seed)

    annotations = namespace.training_annotations(data, dataset_size="288Mi", **sizes)
    limited = container(script=TRAIN, resources={"limits": {"memory": "64Mi"}})
    training = job("figures", limited, annotations=annotations)
    namespace.start(training)
    namespace.until_logged(training, "podferry", "checkpoint durable")
    running = namespace.pod(training)
    status = agent_status(namespace, running.name)
    assert status["checkpoints"]["restored"]["name"] == "epoch-1"
    compared = _compared(running.object)
    limits = _limits(site, namespace, running, training, tmp_path)
    resident = processes(site.cluster, namespace.name, running.name, "podferry")
    namespace.exec(running.name, TRAINER, "touch", "/tmp/go")
    outcome = namespace.outcome(training)
    assert outcome.succeeded, outcome

    figures.record("memory charged against computed, MiB", compared)
    figures.record("memory against limits, MiB", limits)
    figures.record("agent's processes, MiB", _in_mib(resident))
    figures.record("prefetch and gate", _speeds(status, outcome))
    assert [row for row in compared if abs(row["measured"] / row["computed"] - 1) > NEAR] == []
    assert [row for row in limits if row["peak"] > row["limit"]] == []


def _compared(one: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What files in memory volumes cost, in full pages, by their writer."""
    dataset, checkpoint = allocated_bytes([FILE] * FILES), allocated_bytes([CHECKPOINT])
    rows = {
        "sidecar: dataset and restored checkpoint": ("podferry", dataset + checkpoint),
        "trainer: checkpoint written": (TRAINER, checkpoint),
        "pod: all three": ("", dataset + 2 * checkpoint),
    }
    return [
        {"what": what, "computed": _mib(computed), "measured": _mib(charged(one, who).files)}
        for what, (who, computed) in rows.items()
    ]


def _limits(
    site: Site, namespace: Namespace, running: PodOutcome, training: Object, folder: Path
) -> list[dict[str, Any]]:
    """The most that was charged to whom, cached files of the image among it, against the sum's limits."""
    explained = _explained(site, training, folder)
    spec = running.object["spec"]
    containers = {one["name"]: one for one in [*spec["initContainers"], *spec["containers"]]}
    limits = {name: one["resources"]["limits"]["memory"] for name, one in containers.items()}
    # What the command prints offline is what the webhook has set.
    sidecar, added = -(-explained["sidecar"] // MIB), explained["trainer, added"] // MIB
    assert limits["podferry"] == f"{sidecar}Mi"
    assert limits[TRAINER] == f"{64 + added}Mi"
    return [
        {"who": who, "limit": limit, **_usage(running.object, who)}
        for who, limit in (("podferry", sidecar), (TRAINER, 64 + added))
    ] + [{"who": "pod", "limit": sidecar + 64 + added + 64, **_usage(running.object, "")}]


def _usage(one: Mapping[str, Any], who: str) -> dict[str, float]:
    found = charged(one, "" if who == "pod" else who)
    return {"peak": _mib(found.peak), "now": _mib(found.usage), "processes": _mib(found.own)}


def _explained(site: Site, training: Object, folder: Path) -> dict[str, int]:
    """The rows of `podferry explain`."""
    file = folder / "job.json"
    file.write_text(json.dumps(training))
    [shown] = site.bucket.podferry_json("explain", "-f", str(file))
    return {row["what"]: row["bytes"] for row in shown["memory"]}


def _speeds(status: Any, outcome: Outcome) -> dict[str, Any]:
    opened = next(line for line in outcome["podferry"].log.splitlines() if '"gate open"' in line)
    waited = datetime.fromisoformat(json.loads(opened)["timestamp"]).timestamp() - status["started_at"]
    made = moment(outcome.pod.object["metadata"]["creationTimestamp"])
    started = moment(outcome[TRAINER].state["terminated"]["startedAt"])
    read = next(line for line in outcome[TRAINER].log.splitlines() if line.startswith("read"))
    dataset, restored = status["datasets"][0], status["checkpoints"]["restored"]
    return {
        "prefetch_MB_per_s": round(dataset["bytes"] / dataset["seconds"] / 1e6),
        "prefetch_bytes": dataset["bytes"],
        "restore_MB_per_s": round(restored["bytes"] / restored["seconds"] / 1e6),
        "trainer_reads_MB_per_s": round(float(read.split()[1])),
        "agent_start_to_gate_open_s": round(waited, 2),
        "gate_container_s_rounded": outcome["podferry-gate"].seconds,
        "pod_created_to_trainer_started_s_rounded": (started - made).total_seconds(),
    }


def test_images_and_the_webhook_are_small(site: Site, figures: Figures) -> None:
    images = {
        name: _mib(image["sizeBytes"])
        for node in site.cluster.get("nodes")["items"]
        for image in node["status"]["images"]
        for name in image["names"] or []  # an image that lost its name to a newer one has none
        if name.startswith("localhost/podferry")
    }
    selector = ("-lapp.kubernetes.io/name=podferry-webhook", "--field-selector=status.phase=Running")
    pods = site.cluster.get("-n", install.NAMESPACE, "pods", *selector)["items"]
    webhook = processes(site.cluster, install.NAMESPACE, pods[0]["metadata"]["name"], "webhook")
    figures.record("image, MiB", images)
    figures.record("webhook's process, MiB", _in_mib(webhook))
    assert sum(one["VmRSS"] for one in webhook) < 128 * MIB  # its memory request


def _in_mib(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: value if name == "command" else _mib(value) for name, value in one.items()} for one in found
    ]


def _mib(count: int) -> float:
    return round(count / MIB, 1)
