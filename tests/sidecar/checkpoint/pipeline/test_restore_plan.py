from __future__ import annotations

import msgspec
import pytest
from structlog.testing import capture_logs

from podferry.contract.destination.commit import (
    DOUBTFUL_FORMAT,
    Confidence,
    Doubt,
    DoubtKind,
    commit_name,
    encode_commit,
)
from podferry.contract.errors import NotFound, Refused
from podferry.sidecar.checkpoint.pipeline import restore_plan
from podferry.sidecar.checkpoint.pipeline.restore_plan import Restored
from podferry.sidecar.staging.volume_capacity import Capacity
from podferry.sidecar.state.durations import Durations
from tests.support.checkpoint_job import life
from tests.support.patience import PATIENCE


async def test_a_pod_resumes_from_the_previous_pods_newest_checkpoint(any_rig, work):
    first = work()
    assert first.summary().endswith("training starts from the beginning")
    assert await life(first, any_rig, "epoch-1.bin", "epoch-2.bin") is None
    newest = any_rig.store.commits()[-1].name
    for path in sorted(any_rig.root.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (any_rig.control / "journal.json").unlink()
    second = work()
    assert await life(second, any_rig) == newest
    assert f"resuming from {newest}" in second.summary()
    assert await life(second, any_rig, "epoch-3.bin") == newest
    await any_rig.committed(3)


async def test_plan_fails_if_a_required_checkpoint_is_missing(work):
    with pytest.raises(NotFound):
        await work(restore="latest").plan()


async def test_never_restores_nothing(any_rig, work):
    await life(work(), any_rig, "epoch-1.bin")
    (any_rig.root / "epoch-1.bin").unlink()
    assert await life(work(restore="never"), any_rig) is None
    assert list(any_rig.root.iterdir()) == []


async def test_only_files_that_are_not_there_yet_need_space(any_rig, work, monkeypatch):
    await life(work(), any_rig, "epoch-1.bin")
    monkeypatch.setattr(restore_plan, "measure", lambda directory: Capacity(volume_bytes=100))
    await work().plan()  # an earlier start of the worker has brought it
    (any_rig.root / "epoch-1.bin").unlink()
    with pytest.raises(Refused, match="larger than its volume"):
        await work().plan()


def make_doubtful(rig, *sequences):
    """Replace commits by doubtful ones."""
    doubt = Doubt(DoubtKind.FEWER, "optimizer.bin is missing")
    for commit in rig.store.commits():
        if commit.sequence in sequences:
            changed = msgspec.structs.replace(
                commit, format=DOUBTFUL_FORMAT, confidence=Confidence.DOUBTFUL, doubts=(doubt,)
            )
            rig.content.objects[f"base/run/{commit_name(commit.sequence)}"] = encode_commit(changed)


def empty(rig):
    """The directories of a new pod."""
    for path in rig.root.iterdir():
        path.unlink()
    (rig.control / "journal.json").unlink()


async def two_checkpoints(rig, work):
    """A pod that made two checkpoints durable, one after the other."""
    first = work()
    await life(first, rig, "epoch-1.bin")
    await life(work(), rig, "epoch-2.bin")
    empty(rig)


async def test_a_doubtful_commit_is_passed_over_and_named(any_rig, work):
    await two_checkpoints(any_rig, work)
    make_doubtful(any_rig, 2)
    made = work()
    with capture_logs() as logs:
        await made.restore(await made.plan())
    reason = "epoch-2 (doubtful: optimizer.bin is missing)"
    assert f"resuming from epoch-1 (commit 1); newer ones were passed over: {reason}" in made.summary()
    assert [one.name for one in made._status.passed_over] == ["epoch-2"]
    assert [line["log_level"] for line in logs if "passed over" in line["event"]] == ["warning"]


async def test_if_none_is_sure_training_starts_from_the_beginning_and_says_so(any_rig, work):
    await two_checkpoints(any_rig, work)
    make_doubtful(any_rig, 1, 2)
    made = work()
    with capture_logs() as logs:
        await made.restore(await made.plan())
    assert made.restored is None
    assert "TRAINING STARTS FROM THE BEGINNING" in made.summary()
    assert "epoch-2 (doubtful: optimizer.bin is missing), epoch-1 (" in made.summary()
    assert "set restore to latest or to its name" in made.summary()
    assert [(one.name, one.sequence) for one in made._status.passed_over] == [("epoch-2", 2), ("epoch-1", 1)]
    (line,) = [line for line in logs if "from the beginning" in line["event"]]
    assert (line["log_level"], line["count"]) == ("error", 2)


async def test_a_restarted_worker_still_knows_what_was_passed_over(any_rig, work):
    await two_checkpoints(any_rig, work)
    make_doubtful(any_rig, 2)
    first = work()
    await life(first, any_rig)
    again = work()
    assert again._status.passed_over == first._status.passed_over != []
    assert again._status.passed_over_count == 1
    assert first.summary().splitlines()[0] == again.summary()


async def test_what_was_found_damaged_is_not_referenced_by_a_restarted_worker_either(any_rig, work):
    await life(work(), any_rig, "epoch-1.bin")
    empty(any_rig)
    (file,) = any_rig.store.commits()[0].files
    any_rig.store.check = lambda before: None  # here it is the test that breaks a commit
    any_rig.content.objects[f"base/run/{file.object}"] = bytes(file.size)
    first = work()
    assert await life(first, any_rig) is None
    again = work()
    pipeline = await again.start(Durations())
    async with any_rig.running(pipeline=pipeline):
        any_rig.write("epoch-1.bin", b"epoch-1.bin" * 2000)
        assert (await pipeline.flush(PATIENCE, final=True, succeeded=True)).durable
    newest = any_rig.store.commits()[-1]
    assert any_rig.store.bytes_of(newest) == {"epoch-1.bin": b"epoch-1.bin" * 2000}


async def test_a_run_that_starts_over_commits_what_an_abandoned_one_has_committed(any_rig, work):
    await two_checkpoints(any_rig, work)
    made = work(restore="never")
    await life(made, any_rig, "epoch-1.bin")
    newest = any_rig.store.commits()[-1]
    assert (newest.name, newest.sequence) == ("epoch-1", 3)
    assert (made._restored.abandoned, made._restored.resumed) == ((0, 2), 0)
    assert await any_rig.restored() == ("epoch-1", {"epoch-1.bin": b"epoch-1.bin" * 2000})
    # Its worker restarts, or another pod continues it: what is committed is found.
    for start in ("worker", "pod"):
        for path in any_rig.root.iterdir():
            path.unlink()
        if start == "pod":
            empty(any_rig)
            await life(work(), any_rig, "epoch-1.bin")
        else:
            await life(work(restore="never"), any_rig, "epoch-1.bin")
        assert len(any_rig.store.commits()) == 3


async def test_a_run_that_resumes_from_the_newest_abandons_nothing(any_rig, work):
    await two_checkpoints(any_rig, work)
    made = work()
    await life(made, any_rig, "epoch-1.bin")
    assert (made._restored.abandoned, made._restored.resumed) == (None, 2)
    assert len(any_rig.store.commits()) == 2


def test_nothing_passed_over_needs_no_words():
    assert Restored().summary() == "training starts from the beginning"
