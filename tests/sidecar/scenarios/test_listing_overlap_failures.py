"""Failures, kills and cancellations while small files are downloaded during a listing."""

import asyncio
import errno

import pytest

from podferry.contract.errors import Refused, Unavailable
from podferry.sidecar.dataset import listing_overlap as module
from podferry.sidecar.staging.stage_writer import StageWriter
from podferry.sidecar.staging.staging_dir import OVERLAP_PREFIX
from tests.support import listing_overlap_site
from tests.support.listing_overlap_site import FILES, SMALL, finished, held
from tests.support.unsigned_requests import UnsignedRequestBuilder

place, job = listing_overlap_site.place, listing_overlap_site.job


async def test_unexpected_responses_are_left_to_the_fetch(place, job, tmp_path):
    place.status = 500
    place.pauses["e/last"] = [lambda: place.until("d/00")]
    one = await job()
    planned = await one.plan()
    assert held(tmp_path / "stage") == {}
    await finished(planned, tmp_path)


async def test_a_full_volume_is_left_to_the_fetch(place, job, tmp_path, monkeypatch):
    write_complete, full = StageWriter.write_complete, []

    def fails(stage, number, data):
        if stage.root.name.startswith(OVERLAP_PREFIX):
            full.append(number)
            raise OSError(errno.ENOSPC, "No space left on device")
        return write_complete(stage, number, data)

    monkeypatch.setattr(StageWriter, "write_complete", fails)
    place.pauses["e/last"] = [lambda: place.until("d/00")]
    one = await job()
    planned = await one.plan()
    assert full
    await finished(planned, tmp_path)


async def test_a_failed_listing_is_retried_and_no_file_is_fetched_twice(place, job, tmp_path):
    async def fail():
        await place.until(*SMALL)
        place.pauses.clear()
        raise Unavailable.of("the server does not answer")

    place.pauses["e/last"] = [fail]
    one = await job()
    with pytest.raises(Unavailable):
        await one.plan()
    planned = await one.plan()
    assert sorted(place.requested) == sorted(SMALL)
    await finished(planned, tmp_path)


class Death(BaseException):
    """Ends a process at once."""


async def test_files_of_a_kill_during_adoption_are_fetched_again(place, job, tmp_path, monkeypatch):
    place.pauses["e/last"] = [lambda: place.until(*SMALL)]
    one, rename_in = await job(), StageWriter.rename_in

    def die_at_the_third(stage, path, name):
        if name == "d/02":
            raise Death
        rename_in(stage, path, name)

    with monkeypatch.context() as patch:
        patch.setattr(StageWriter, "rename_in", die_at_the_third)
        with pytest.raises(Death):
            await one.plan()
    one.staging.close()
    second = await job()
    one._overlap = None  # it is dead: it removes nothing
    planned = await second.plan()
    assert sorted(held(tmp_path / "stage")) == ["d/00", "d/01"]
    await planned.fetch(log_progress=False)
    assert held(tmp_path / "stage") == FILES


async def test_unfinished_files_take_no_space(place, job, tmp_path, monkeypatch):
    """Neither those that are incomplete when the listing ends nor those that the plan does not need."""
    monkeypatch.setattr(module, "FINISH_SECONDS", 0.0)
    place.answering.clear()
    place.pauses["e/last"] = [lambda: place.until("d/00")]
    one = await job()
    planned = await one.plan()
    assert held(tmp_path / "stage") == {}
    assert one.status.transfer.handed_over == 0
    place.answering.set()
    await finished(planned, tmp_path)


async def test_a_plan_cancelled_during_the_listing_leaves_nothing(place, job, tmp_path):
    came = asyncio.Event()

    async def stall():
        await place.until(*SMALL)
        came.set()
        await asyncio.Event().wait()

    place.pauses["e/last"] = [stall]
    one = await job()
    planning = asyncio.create_task(one.plan())
    await came.wait()
    planning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await planning
    await one.close()
    assert list((tmp_path / "stage").iterdir()) == []


async def test_a_plan_cancelled_at_the_end_of_the_listing_leaves_no_task(place, job, tmp_path, monkeypatch):
    place.answering.clear()
    place.pauses["e/last"] = [lambda: place.until("d/00")]
    finish, finishing = module.ListingOverlap.finish, asyncio.Event()

    async def noticed(self, seconds=None):
        finishing.set()
        await finish(self, seconds)

    monkeypatch.setattr(module.ListingOverlap, "finish", noticed)
    one, before = await job(), asyncio.all_tasks()
    planning = asyncio.create_task(one.plan())
    await finishing.wait()
    planning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await planning
    assert not [task for task in asyncio.all_tasks() - before if "ListingOverlap" in repr(task)]
    await one.close()
    assert list((tmp_path / "stage").iterdir()) == []


async def test_a_file_that_cannot_be_renamed_is_left_to_the_fetch(place, job, tmp_path):
    """Which reports why; here the name is taken by a directory."""
    (tmp_path / "stage" / "d" / "05").mkdir(parents=True)
    place.pauses["e/last"] = [lambda: place.until(*SMALL)]
    one = await job()
    planned = await one.plan()
    with pytest.raises(Refused, match="d/05 cannot be written to the stage"):
        await planned.fetch(log_progress=False)


@pytest.mark.parametrize("fails", [False, True], ids=["the listing ends", "the listing fails"])
async def test_errors_are_left_to_the_fetch(place, job, tmp_path, monkeypatch, fails):
    seen = asyncio.Event()

    async def prepare(self, entries):
        seen.set()
        raise RuntimeError("closed")

    async def pause():
        await seen.wait()
        if fails:
            raise Unavailable.of("the server does not answer")

    place.pauses["e/last"] = [pause]
    one = await job()
    with monkeypatch.context() as patch:
        patch.setattr(UnsignedRequestBuilder, "prepare", prepare)
        if fails:
            with pytest.raises(Unavailable):
                await one.plan()
            return
        planned = await one.plan()
    await finished(planned, tmp_path)


async def test_early_files_are_removed_if_the_fetch_never_starts(place, job, tmp_path):
    """For example, if the checkpoints are refused."""
    place.pauses["e/last"] = [lambda: place.until(*SMALL)]
    one = await job()
    await one.plan()
    await one.close()
    assert held(tmp_path / "stage") == {}


async def test_before_the_plan_the_status_shows_no_progress(place, job, tmp_path):
    shown = []

    async def look():
        await place.until(*SMALL)
        one.progress.refresh()
        shown.append((one.status.files_done, one.status.bytes_done))

    place.pauses["e/last"] = [look]
    one = await job()
    await one.plan()
    assert shown == [(0, 0)]
