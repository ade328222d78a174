"""An annotated Job trains: its data is complete, its checkpoint becomes durable, a second run resumes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.cluster.layout import BASE_IMAGE
from tests.e2e.manifests import IMAGE_OF_1000, UNPRIVILEGED, Object, container, job
from tests.e2e.outcome import Outcome
from tests.e2e.site import RESTRICTED, Site

FILES = {
    f"part-{number}/{number}.bin": hashlib.shake_256(bytes(number)).digest(700_000) for number in range(5)
}
DIGESTS = {name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()}
FIRST, SECOND = b'{"weights": "first"}', b'{"weights": "again"}'

# Run twice: the first time it finds nothing, and renames a directory into place; the second time it
# overwrites in place what it finds. JSON shows its end.
TRAIN = f"""
import hashlib, os, pathlib
os.umask(0o077)
data, checkpoints = (pathlib.Path(os.environ[f"PODFERRY_{{name}}"]) for name in ("DATASET", "CHECKPOINTS"))
assert (str(data), str(checkpoints)) == ("/dev/shm/dataset", "/dev/shm/checkpoints")
found = {{str(file.relative_to(data)): hashlib.sha256(file.read_bytes()).hexdigest()
          for file in data.rglob("*") if file.is_file()}}
assert found == {DIGESTS!r}, found
print("the data is complete, read by user", os.getuid())
weights = checkpoints / "last" / "weights.json"
if not weights.exists():
    assert not list(checkpoints.iterdir())
    partial = checkpoints / "last.tmp"
    partial.mkdir()
    (partial / "weights.json").write_bytes({FIRST!r})
    partial.rename(checkpoints / "last")
    assert (weights.parent.stat().st_mode, weights.stat().st_mode) == (0o40700, 0o100600)
else:
    print("resumed from", weights.read_bytes())
    with weights.open("r+b") as file:
        file.write({SECOND!r})
"""


@dataclass(frozen=True)
class Trainer:
    """The user that a trainer runs as.

    Attributes:
        user: Its user id.
        agent: That of the agent.
        image: Its image.
        security: The `securityContext` of its container.
        labels: Of its namespace.
    """

    user: int
    agent: int
    image: str = BASE_IMAGE
    security: dict[str, Any] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)

    def job(self, annotations: dict[str, str]) -> Object:
        one = container(script=TRAIN, image=self.image, securityContext=self.security)
        return job("digits", one, annotations=annotations)


TRAINERS = {
    "image-of-root": Trainer(0, 0),
    "user-1000-restricted": Trainer(
        1000, 1000, security={**UNPRIVILEGED, "runAsUser": 1000}, labels=RESTRICTED
    ),
    # Nothing in the pod says that it is 1000: the agent is root with two capabilities.
    "image-of-1000": Trainer(1000, 0, image=IMAGE_OF_1000),
}


@pytest.fixture(scope="module")
def trainings(site: Site, image_of_1000: None) -> Iterator[dict[str, Future[None]]]:
    """All trainers in parallel, each in its own namespace."""
    data = site.upload_dataset("flow", FILES)
    with ThreadPoolExecutor(len(TRAINERS)) as pool:
        yield {name: pool.submit(train_twice, site, one, data) for name, one in TRAINERS.items()}


@pytest.mark.parametrize("name", TRAINERS)
def test_a_job_trains_resumes_and_its_checkpoints_are_durable(
    site: Site, trainings: dict[str, Future[None]], name: str
) -> None:
    trainings[name].result()


def check_run(outcome: Outcome, trainer: Trainer) -> None:
    assert outcome.succeeded, outcome
    assert f"the data is complete, read by user {trainer.user}" in outcome["trainer"].log
    assert {one.name: one.exit_code for one in outcome.pod.containers.values()} == {
        "podferry": 0,
        "podferry-gate": 0,
        "trainer": 0,
    }
    [agent, _] = outcome.pod.object["spec"]["initContainers"]
    assert agent["securityContext"]["runAsUser"] == trainer.agent


def train_twice(site: Site, trainer: Trainer, data: str) -> None:
    """Data, a private checkpoint that becomes durable, then a Job of the same name that resumes from it."""
    with site.namespace(trainer.labels) as namespace:
        training, lineage = trainer.job(namespace.training_annotations(data)), namespace.lineage("digits")

        first = namespace.run(training)
        check_run(first, trainer)
        assert "training starts from the beginning" in first["podferry-gate"].log
        [commit] = site.bucket.commits(lineage)
        assert site.bucket.committed(commit) == {"last/weights.json": FIRST}

        namespace.delete(training)
        second = namespace.run(training)
        check_run(second, trainer)
        assert f"resumed from {FIRST!r}" in second["trainer"].log
        before, after = site.bucket.commits(lineage)
        assert site.bucket.committed(before) == {"last/weights.json": FIRST}
        assert site.bucket.committed(after) == {"last/weights.json": SECOND}

        words = ("checkpoints", "verify", site.bucket.uri("checkpoints"), lineage, "--deep")
        verdicts = site.bucket.podferry_json(*words)
        assert [(one["sequence"], one["state"], one["confidence"]) for one in verdicts] == [
            (2, "intact", "sure"),
            (1, "intact", "sure"),
        ]
