"""The page about a training says what was measured, and how the rest was computed."""

from __future__ import annotations

from podferry.components.reports.document import Document
from podferry.components.reports.training_page import training_page as page_of
from podferry.contract.errors import Problem
from podferry.contract.status import (
    CheckpointStatus,
    DatasetStatus,
    DurableCheckpoint,
    PassedOver,
    RestoredStatus,
    Status,
)

DATASET = DatasetStatus("s3://a/b", "/dev/shm/dataset", files=4, bytes=10 << 20, seconds=2.0)


def training_page(status: Status) -> Document:
    return page_of(status, "injected")


def saved(*doubts: str, pending: tuple[str, ...] = ()) -> CheckpointStatus:
    last = DurableCheckpoint("step-2", 2, 2, 1 << 20, 130.0, 131.5, doubts)
    first = DurableCheckpoint("step-1", 1, 1, 1 << 20, 110.0, 112.0)
    return CheckpointStatus(
        "s3://c/d", "/x", "team.kfp.p.train", durable=[first, last], durable_count=2, pending=list(pending)
    )


def test_what_was_staged_and_what_a_further_read_would_take() -> None:
    (staged,) = training_page(Status(datasets=[DATASET])).tables
    assert staged.rows == (("s3://a/b", "4", "10.0 MiB", "none", "2.0", "5.0 MiB/s", "2.0 s"),)
    assert "Computed: what one further read" in staged.note


def test_nothing_is_computed_from_a_stage_that_was_kept() -> None:
    kept = DatasetStatus("s3://a/b", "/x", files=4, bytes=10, files_kept=4, name="test")
    (staged,) = training_page(Status(datasets=[kept])).tables
    assert staged.rows[0][0] == "test: s3://a/b"
    assert staged.rows[0][3:] == (
        "4 files of an earlier start",
        "0.0",
        "",
        "unknown: nothing was fetched",
    )


def test_the_timeline_of_checkpoints_with_their_confidence() -> None:
    page = training_page(Status(checkpoints=saved("silence alone"), started_at=100.0))
    (timeline,) = page.tables
    assert [row[3:] for row in timeline.rows] == [
        ("10.0", "2.0", "sure"),
        ("30.0", "1.5", "doubtful: silence alone"),
    ]
    assert page.verdict == "2 checkpoints are durable at s3://c/d"
    assert page.good is False
    assert training_page(Status(checkpoints=saved())).good is True


def test_what_is_not_durable_and_what_was_left_out_is_said() -> None:
    status = saved(pending=("step-3",))
    status.durable_count = 60
    status.problems = [Problem("the store refuses", "403")]
    page = training_page(Status(checkpoints=status))
    assert page.verdict.endswith("not durable: step-3")
    assert page.good is False
    assert page.notes == ("Agent: injected", "the store refuses (403).")
    status.durable_count = 1
    assert training_page(Status(checkpoints=status)).verdict.startswith("1 checkpoint is durable")
    assert page.tables[0].note.endswith("The first 58 are left out.")


def test_where_it_resumed() -> None:
    status = CheckpointStatus("s3://c/d", "/x", "l")
    status.restored = RestoredStatus("step-7", "step-7.pt", "step-7-00", 7, 7, "l", 1 << 20, 0.25)
    status.passed_over = [PassedOver("step-8", 8, "it is doubtful")]
    page = training_page(Status(checkpoints=status))
    resumed, passed = page.tables
    assert resumed.rows == (("step-7", "7", "1.0 MiB", "0.2 s", "l"),)
    assert passed.rows == (("step-8", "8", "it is doubtful"),)
    assert page.good is None


def test_a_training_without_a_destination() -> None:
    page = training_page(Status())
    assert (page.tables, page.good) == ((), None)
    assert "No destination" in page.verdict
