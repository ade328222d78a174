"""How the agent finds out which files are open, and new content under an old identity, by the pod's users."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.cluster.layout import BASE_IMAGE
from tests.e2e.manifests import IMAGE_OF_1000, TRAINER, UNPRIVILEGED, container, pod
from tests.e2e.outcome import Outcome
from tests.e2e.site import RESTRICTED, Site
from tests.e2e.trainers import COMMON

MIB = 1 << 20
PATCHES = f"""{COMMON}
import mmap

def until(condition):
    deadline = time.monotonic() + 450
    while not condition(status()):
        assert time.monotonic() < deadline, status()
        time.sleep(0.2)

write_in_place(1, {MIB})
until(lambda found: len(found["durable"]) == 1)
path = checkpoints / "step-1.bin"
before = path.stat()
with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
    until(lambda found: "leases" in found["open_files"])
    mapped[:] = b"2" * {MIB}
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
after = path.stat()
assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
until(lambda found: len(found["durable"]) == 2)
say(open_files=status()["open_files"])
"""
"""Maps a durable checkpoint, and gives it new content without a new identity."""
CLOSES = "inotify reports closes"
NEITHER = (
    "no leases for files of user 1000 (another user's files, and no CAP_LEASE), "
    "/proc without the trainer's processes"
)


@dataclass(frozen=True)
class Users:
    """The users of a pod, and what works there.

    Attributes:
        open_files: The line in the status.
        image: The trainer's image.
        security: The `securityContext` of its container.
        labels: Of its namespace.
    """

    open_files: str
    image: str = BASE_IMAGE
    security: dict[str, Any] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)


USERS = {
    "both-root": Users(f"leases for files of user 0; {CLOSES}"),
    "both-1000-restricted": Users(
        f"leases for files of user 1000; {CLOSES}",
        security={**UNPRIVILEGED, "runAsUser": 1000},
        labels=RESTRICTED,
    ),
    "agent-root-trainer-1000": Users(f"{NEITHER}; {CLOSES}", image=IMAGE_OF_1000),
}


@pytest.fixture(scope="module")
def runs(site: Site, image_of_1000: None) -> Iterator[dict[str, Future[Outcome]]]:
    """All pods in parallel, each in its own namespace."""
    with ThreadPoolExecutor(len(USERS)) as pool:
        yield {name: pool.submit(run, site, name) for name in USERS}


def run(site: Site, name: str) -> Outcome:
    users = USERS[name]
    with site.namespace(users.labels) as namespace:
        one = container(script=PATCHES, image=users.image, securityContext=users.security)
        return namespace.run(pod(name, one, annotations=namespace.training_annotations(lineage=name)), 150)


@pytest.mark.parametrize("name", USERS)
def test_the_status_says_what_answers(runs: dict[str, Future[Outcome]], name: str) -> None:
    outcome = runs[name].result()
    assert outcome.succeeded, outcome
    said = json.loads(outcome[TRAINER].log.splitlines()[-1])
    assert said == {"open_files": USERS[name].open_files}


@pytest.mark.parametrize("name", USERS)
def test_new_content_under_an_old_identity_is_committed(
    site: Site, runs: dict[str, Future[Outcome]], name: str
) -> None:
    runs[name].result()
    found = [site.bucket.committed(one) for one in site.bucket.commits(name)]
    assert found[0] == {"step-1.bin": b"1" * MIB}
    assert found[-1] == {"step-1.bin": b"2" * MIB}
