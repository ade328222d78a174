"""What trainers do to memory: empty `/dev/shm`, share it among processes, fill the checkpoint volume."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from podferry.contract.destination.commit import Commit
from podferry.webhook.pod.pod_json import SIDECAR
from tests.cluster.layout import GPUS
from tests.e2e.manifests import TRAINER, Object, container, pod
from tests.e2e.namespace import Namespace
from tests.e2e.outcome import Outcome
from tests.e2e.scenarios import Scenarios, start_scenarios
from tests.e2e.site import Site
from tests.e2e.store_proxy import store_proxy
from tests.e2e.trainers import COMMON, assert_unharmed, release_trainer

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
deadline = time.monotonic() + 300
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


class Result(NamedTuple):
    """The result of a scenario.

    Attributes:
        outcome: Of its pod.
        commits: Of its lineage, and their bytes by name.
        seen: A log of the running pod.
    """

    outcome: Outcome
    commits: list[Commit]
    files: list[dict[str, bytes]]
    seen: str = ""


def collect_result(namespace: Namespace, manifest: Object, seen: str = "") -> Result:
    outcome = namespace.outcome(manifest, 120)
    commits = namespace.bucket.commits(manifest["metadata"]["name"])
    return Result(outcome, commits, [namespace.bucket.committed(one) for one in commits], seen)


def removes(namespace: Namespace) -> Result:
    """All of `/dev/shm` is removed while the checkpoint is uploaded."""
    name = "removes"
    with store_proxy(namespace.cluster, namespace.bucket, "PUT /e2e/checkpoints/*step-1*") as proxy:
        annotations = namespace.training_annotations(namespace.bucket.uri("datasets/memory"), lineage=name)
        manifest = pod(name, container(script=REMOVES), annotations=annotations | {ENDPOINT: proxy.endpoint})
        namespace.start(manifest)
        proxy.until_held("step-1", timeout=90)
        release_trainer(namespace, name, "go")
        namespace.until_logged(manifest, TRAINER, "checkpoints")
        proxy.release()
        release_trainer(namespace, name, "end")
        return collect_result(namespace, manifest)


def shares(namespace: Namespace) -> Result:
    resources = {"limits": {"memory": "1Gi"}}
    annotations = namespace.training_annotations(
        namespace.bucket.uri("datasets/memory"), lineage="shares", shm_size="600Mi"
    )
    manifest = pod("shares", container(script=SHARES, resources=resources), annotations=annotations)
    namespace.start(manifest)
    return collect_result(namespace, manifest)


def fills(namespace: Namespace) -> Result:
    """The store accepts nothing until the trainer has filled its volume; then it accepts everything."""
    name = "fills"
    with store_proxy(namespace.cluster, namespace.bucket, "PUT /e2e/checkpoints/*step-*") as proxy:
        annotations = namespace.training_annotations(lineage=name) | {ENDPOINT: proxy.endpoint}
        resources = {"limits": {"memory": "64Mi"}}
        manifest = pod(name, container(script=FILLS, resources=resources), annotations=annotations)
        namespace.start(manifest)
        namespace.until_logged(manifest, TRAINER, "full", timeout=90)
        log = namespace.until_logged(manifest, SIDECAR, "full")
        proxy.release()
        release_trainer(namespace, name, "go")
        return collect_result(namespace, manifest, log)


def uses_gpu(namespace: Namespace) -> Result:
    resources = {"limits": {"nvidia.com/gpu": "1", "memory": "64Mi"}}
    annotations = namespace.training_annotations(namespace.bucket.uri("datasets/memory"), lineage="gpu")
    manifest = pod("gpu", container(script=USES_GPU, resources=resources), annotations=annotations)
    namespace.start(manifest)
    return collect_result(namespace, manifest)


SCENARIOS = {"removes": removes, "shares": shares, "fills": fills, "gpu": uses_gpu}


@pytest.fixture(scope="module")
def results(site: Site) -> Iterator[Scenarios[Result]]:
    site.upload_dataset("memory", FILES)
    site.cluster.set_gpus(GPUS)
    with start_scenarios(site, SCENARIOS) as found:
        yield found


def facts(outcome: Outcome) -> dict[str, object]:
    """All facts that a trainer printed."""
    lines = map(json.loads, outcome[TRAINER].log.splitlines())
    return {name: fact for line in lines for name, fact in line.items()}


def test_removing_all_of_dev_shm_reaches_neither_the_dataset_nor_a_hold(results: Scenarios[Result]) -> None:
    result = results["removes"]
    assert_unharmed(result.outcome)
    printed = facts(result.outcome)
    assert printed["left"] == {name: len(data) for name, data in FILES.items()}
    assert printed["checkpoints"] == []
    assert result.files == [{"step-1.bin": b"1" * MIB}]


def test_loader_processes_share_500_mib(results: Scenarios[Result]) -> None:
    result = results["shares"]
    assert_unharmed(result.outcome)
    assert facts(result.outcome) == {"codes": [0] * 4, "shared": 500 * MIB, "last": [1, 2, 3, 4]}


def test_a_full_checkpoint_volume_is_reported_and_survived(results: Scenarios[Result]) -> None:
    result = results["fills"]
    assert_unharmed(result.outcome)
    printed = facts(result.outcome)
    assert printed["full"] == printed["saved"] == 5  # of 5 MiB each, in 24 MiB
    assert [one.step for one in result.commits] == [1, 2, 3, 4, 5]
    lines = [json.loads(line) for line in result.seen.splitlines()]
    (warning,) = [line for line in lines if line["event"] == "the checkpoint volume is full"]
    assert warning["level"] == "warning"
    assert "podferry.io/checkpoint-size" in warning["remedy"]


def test_a_pod_that_asks_for_a_gpu_runs(results: Scenarios[Result]) -> None:
    result = results["gpu"]
    assert_unharmed(result.outcome)
    limits = result.outcome.pod.object["spec"]["containers"][0]["resources"]["limits"]
    assert limits["nvidia.com/gpu"] == "1"
