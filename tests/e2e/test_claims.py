"""A pod trains from a claim that the agent copies, and commits to a claim."""

from __future__ import annotations

import hashlib
import json

import pytest

from tests.e2e.claims import CLAIM, claim, volume
from tests.e2e.manifests import container, job, pod, podferry_annotations
from tests.e2e.namespace import Namespace
from tests.e2e.site import Site

SET = {
    f"part {number}/{number}?.bin": hashlib.shake_256(bytes([number])).digest(300_000) for number in range(4)
}
DIGESTS = {name: hashlib.sha256(data).hexdigest() for name, data in SET.items()}
PREPARE = """
import hashlib, pathlib
for number in range(4):
    file = pathlib.Path(f"/claim/{folder}/set/part {{number}}/{{number}}?.bin")
    file.parent.mkdir(parents=True)
    file.write_bytes(hashlib.shake_256(bytes([number])).digest(300_000))
"""
TRAIN = f"""
import hashlib, os, pathlib
data, checkpoints = (pathlib.Path(os.environ[f"PODFERRY_{{name}}"]) for name in ("DATASET", "CHECKPOINTS"))
found = {{str(file.relative_to(data)): hashlib.sha256(file.read_bytes()).hexdigest()
          for file in data.rglob("*") if file.is_file()}}
assert found == {DIGESTS!r}, found
assert os.stat(data).st_dev != os.stat("/").st_dev
print(pathlib.Path(os.environ["PODFERRY_RESTORED_FILE"]).read_text().strip() or "fresh")
(checkpoints / "last.tmp").mkdir(exist_ok=True)
(checkpoints / "last.tmp/weights").write_bytes(b"weights")
(checkpoints / "last.tmp").rename(checkpoints / f"run-{{len(list(checkpoints.iterdir()))}}")
# A directory: of a single file, it is doubtful whether more follow, and a doubtful one is not restored.
"""
LOOK = """
import json, pathlib
found = pathlib.Path("/claim/{folder}/checkpoints").rglob("*")
print(json.dumps(sorted(file.name for file in found if file.is_file() and "commits" in str(file.parent))))
"""


@pytest.fixture
def folder(site: Site, namespace: Namespace):
    """A folder in the claim's volume, removed at the end."""
    name = f"claim-{namespace.name}"
    namespace.start(volume(name), claim(name))
    yield name
    command = ["rm", "-r", f"/claim/{name}"]
    namespace.run(pod("remove", container(command=command, volumeMounts=MOUNTS), volumes=VOLUMES))
    site.cluster.kubectl("delete", "pv", name, "--wait=false", "--ignore-not-found")


VOLUMES = [{"name": "claim", "persistentVolumeClaim": {"claimName": CLAIM}}]
MOUNTS = [{"name": "claim", "mountPath": "/claim"}]


def test_a_pod_trains_from_a_claim_and_commits_to_it(namespace: Namespace, folder: str) -> None:
    def called(name: str, script: str) -> str:
        one = container(script=script.format(folder=folder), volumeMounts=MOUNTS)
        outcome = namespace.run(pod(name, one, volumes=VOLUMES))
        assert outcome.phase == "Succeeded", outcome
        return outcome["trainer"].log

    called("prepare", PREPARE)
    annotations = podferry_annotations(
        dataset=f"pvc://{CLAIM}/{folder}/set",
        dataset_size="32Mi",
        checkpoints=f"pvc://{CLAIM}/{folder}/checkpoints",
        checkpoint_size="8Mi",
        lineage="digits",
    )
    first, second = (
        namespace.run(job(name, container(script=TRAIN), annotations=annotations), 120)
        for name in ("first", "second")
    )
    assert first.succeeded, first
    assert second.succeeded, second
    assert first["trainer"].log.strip() == "fresh"
    assert second["trainer"].log.strip().endswith("run-1")
    assert len(json.loads(called("look", LOOK))) >= 1
