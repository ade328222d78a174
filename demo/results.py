"""What came out: the report's values, and whether all is as promised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from demo.attempt import Attempt
from demo.others import Others
from podferry.contract.destination.commit import Commit
from podferry.pipelines.digits_events import Opened

LEAST_ACCURACY = 0.85
DURABLE_BEFORE = 3
"""Checkpoints that are durable when training is killed."""
VERIFY = "verify-checkpoint"
"""KFP's name of the step that gives the verdict."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What the demo is about to do.

    Attributes:
        images: How many of the 1,797 digits, None for all.
        epochs: To train in all.
        kill_in: The epoch in which training is killed.
    """

    images: int | None = None
    epochs: int = 32
    kill_in: int = 16


@dataclass(frozen=True, slots=True)
class Story:
    """What happened.

    Attributes:
        plan: What was to be done.
        files, bytes: The dataset as it was put into the store.
        began: When the demo began, seconds since the epoch.
        put_began, put_ended: When the dataset went into the store.
        others: The same files without podferry.
        attempts: Both runs of the flow, as far as they went.
        first: The commits after the first, oldest first.
        commits: All of them at the end.
        codes: The flows' exit codes.
    """

    plan: Plan
    files: int
    bytes: int
    began: float
    put_began: float
    put_ended: float
    others: Others
    attempts: tuple[Attempt, Attempt]
    first: Sequence[Commit]
    commits: Sequence[Commit]
    codes: tuple[int, int]


class Report(msgspec.Struct, frozen=True):
    """`report.json`.

    Attributes:
        files, bytes: The dataset.
        prefetch_s: Seconds that its first prefetch took.
        second_prefetch_s: Seconds that the second run's took, which found the stage of the first.
        download_first_s: Seconds that downloading the files one after another takes, with boto3.
        remote_epoch_s: Seconds that reading each file once from the store takes, with boto3.
        mb_per_s: The first prefetch's rate, in 10^6 bytes.
        epochs: Trained in both attempts together.
        accuracy: Share of the test images that are named correctly, 0 to 1.
        checkpoints_durable: Commits at the destination.
        resumed_from: The checkpoint that the second attempt resumed from, or None.
        killed_at: The epoch that ran when training was killed.
        blocked_s: Seconds that training stood still for checkpoints in both attempts: writing them to
            memory, and waiting at the end until the last was durable.
    """

    files: int
    bytes: int
    prefetch_s: float
    second_prefetch_s: float
    download_first_s: float
    remote_epoch_s: float
    mb_per_s: float
    epochs: int
    accuracy: float
    checkpoints_durable: int
    resumed_from: str | None
    killed_at: int
    blocked_s: float

    @property
    def files_per_s(self) -> float:
        """The prefetch's rate in files, 0 where there was none."""
        return self.files / self.prefetch_s if self.prefetch_s else 0.0

    @property
    def waits(self) -> tuple[float, float, float]:
        """Seconds that both runs wait for their data: podferry, a download before each, remote reading.

        podferry's were measured in both runs; the others are computed from one download and one epoch.
        """
        staged = self.prefetch_s + self.second_prefetch_s
        return staged, 2 * self.download_first_s, self.epochs * self.remote_epoch_s


def report(story: Story) -> Report:
    """The values of a completed story."""
    first, second = story.attempts
    prefetch = first.opened.prefetch if first.opened else 0.0
    return Report(
        files=story.files,
        bytes=story.bytes,
        prefetch_s=round(prefetch, 3),
        second_prefetch_s=round(second.opened.prefetch, 3) if second.opened else 0.0,
        download_first_s=round(story.others.download, 3),
        remote_epoch_s=round(story.others.epoch, 3),
        mb_per_s=round(story.bytes / 1e6 / prefetch, 3) if prefetch else 0.0,
        epochs=len({e.name for attempt in story.attempts for e in attempt.epochs if e.ended is not None}),
        accuracy=round(second.left.accuracy, 4) if second.left else 0.0,
        checkpoints_durable=len(story.commits),
        resumed_from=second.opened.restored if second.opened else None,
        killed_at=first.killed.epoch if first.killed else 0,
        blocked_s=round(sum(attempt.blocked for attempt in story.attempts), 3),
    )


def staged(opened: Opened) -> str:
    """How the files came into memory, for people."""
    if opened.kept == opened.files:
        return f"{opened.files:,} files are still in memory"
    return f"{opened.files:,} files in memory after {opened.prefetch:.2f} s"


def broken_promises(story: Story, found: Report) -> list[str]:
    """Everything that is not as promised, a sentence each."""
    return [*_first(story), *_second(story), *_end(story, found)]


def _first(story: Story) -> Iterator[str]:
    attempt, code = story.attempts[0], story.codes[0]
    if attempt.opened is None:
        yield "Training never began in the first run; its log says why"
        return
    if (attempt.opened.files, attempt.opened.bytes) != (story.files, story.bytes):
        yield f"{attempt.opened.files} files were prefetched, {story.files} were put into the store"
    if attempt.opened.restored is not None:
        yield f"The first run resumed from {attempt.opened.restored}, though nothing had been committed"
    if attempt.killed is None:
        yield f"Training was not killed: epoch {story.plan.kill_in} was never reached"
    elif attempt.killed.durable < DURABLE_BEFORE:
        yield f"Only {attempt.killed.durable} checkpoints were durable when training was killed"
    if code == 0:
        yield "The first run succeeded although its training was killed"
    durable = {commit.name for commit in story.first}
    lost = [saved.name for saved in attempt.saved if saved.name not in durable]
    if lost:
        yield f"Written before the kill, and not durable after it: {', '.join(lost)}"


def _second(story: Story) -> Iterator[str]:
    attempt, code = story.attempts[1], story.codes[1]
    if attempt.opened is None:
        yield "Training never began in the second run; its log says why"
        return
    newest = story.first[-1] if story.first else None
    if newest is None or attempt.opened.restored != newest.name:
        wanted = newest.name if newest else None
        yield f"The second run resumed from {attempt.opened.restored}; the newest durable was {wanted}"
    elif attempt.opened.epoch != newest.step:
        yield f"The second run began after epoch {attempt.opened.epoch}, not {newest.step}"
    if attempt.opened.kept != story.files:
        yield f"The second run found {attempt.opened.kept} of {story.files} files in memory"
    if attempt.left is None:
        yield "Training did not come to its end in the second run"
    if code != 0:
        failed = [step.name for step in attempt.steps if not step.succeeded]
        yield f"The second run failed in {', '.join(failed) or 'no step'}; its log says why"
    verify = attempt.step(VERIFY)
    if verify is None or verify.ended is None or not verify.succeeded:
        yield "The verify step is not green"


def _end(story: Story, found: Report) -> Iterator[str]:
    if found.accuracy < LEAST_ACCURACY:
        yield f"The accuracy is {found.accuracy:.3f}, less than {LEAST_ACCURACY}"
    steps = [commit.step for commit in story.commits]
    if steps != list(range(1, story.plan.epochs + 1)):
        yield f"Not every epoch has its one durable checkpoint: there are those of {steps}"
    if len({commit.lineage for commit in story.commits}) > 1:
        yield "The two runs wrote to different lineages"
