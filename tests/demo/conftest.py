from datetime import UTC, datetime

import pytest

from tests.support.undistributed import load

load("demo")

from demo.attempt import Attempt, Killed  # noqa: E402 - loaded above
from demo.flow import StepBegan, StepEnded  # noqa: E402
from demo.others import Others  # noqa: E402
from demo.results import Plan, Story  # noqa: E402
from podferry.contract.destination.commit import Commit, CommittedFile  # noqa: E402
from podferry.pipelines.digits_events import Began, Left, Opened, Saved, Trained  # noqa: E402

LINEAGE = "local.kfp.train"
START = 1_700_000_000.0


def commit(number, lineage=LINEAGE):
    name = f"epoch-{number:02d}"
    files = (CommittedFile(f"{name}.npz", f"{name}-abc/{name}.npz", 1000, "0" * 64),)
    created = datetime.fromtimestamp(START + 10 * number + 1.5, UTC)
    return Commit(1, number, lineage, f"{name}-abc", name, number, created, files, "writer")


def opened(at, restored=None, epoch=0, files=100, pid=42):
    return Opened(
        at=at,
        pid=pid,
        lineage=LINEAGE,
        stage="/dev/shm/dataset",
        files=files,
        bytes=5000,
        kept=files if restored else 0,
        prefetch=0.0 if restored else 2.0,
        restored=restored,
        restore=0.1 if restored else 0.0,
        epoch=epoch,
    )


def train(attempt, first, last):
    for epoch in range(first, last + 1):
        at = START + 10 * epoch - 7
        attempt.record(at, Began(at=at, epoch=epoch))
        attempt.record(at, Trained(at=at + 5, epoch=epoch, loss=0.1))
        attempt.record(at, Saved(at=at + 6, name=f"epoch-{epoch:02d}", blocked=0.25))


def killed_attempt():
    attempt = Attempt(1, START)
    attempt.record(START, StepBegan("train"))
    attempt.record(START + 2.5, opened(START + 2.5))
    train(attempt, 1, 4)
    attempt.record(START + 42, Began(at=START + 42, epoch=5))
    attempt.killed, attempt.killed_at = Killed(42, 5, 3, 0.5), START + 43
    attempt.record(START + 44, StepEnded("train", succeeded=False))
    attempt.ended = START + 45
    return attempt


def resumed_attempt():
    attempt = Attempt(2, START + 46)
    attempt.record(START + 46, StepBegan("train"))
    attempt.record(START + 49, opened(START + 49, "epoch-04", 4))
    train(attempt, 5, 8)
    attempt.record(START + 90, Left(at=START + 90, blocked=1.5, accuracy=0.95))
    attempt.record(START + 91, StepEnded("train", succeeded=True))
    attempt.record(START + 91, StepBegan("verify-checkpoint"))
    attempt.record(START + 92, StepEnded("verify-checkpoint", succeeded=True))
    attempt.ended = START + 92
    return attempt


@pytest.fixture
def story():
    """A story in which everything is as promised."""
    return Story(
        plan=Plan(images=100, epochs=8, kill_in=5),
        files=100,
        bytes=5000,
        began=START - 5,
        put_began=START - 4,
        put_ended=START - 1,
        others=Others(download=4.0, epoch=3.0),
        attempts=(killed_attempt(), resumed_attempt()),
        first=[commit(number) for number in range(1, 5)],
        commits=[commit(number) for number in range(1, 9)],
        codes=(1, 0),
    )


@pytest.fixture
def make_commit():
    return commit


@pytest.fixture
def make_opened():
    return opened
