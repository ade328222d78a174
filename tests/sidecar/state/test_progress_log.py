import asyncio

import pytest
import structlog
from structlog.testing import capture_logs

from podferry.contract.status import DatasetStatus
from podferry.sidecar.state import progress_log as module
from podferry.sidecar.state.progress_log import ProgressLog, line

TOTAL = 1000


@pytest.fixture
def clock():
    class Clock:
        now = 100.0

        def __call__(self):
            return self.now

    return Clock()


@pytest.fixture
def status(tmp_path):
    """Planned: of ten files of 1000 bytes two of 200 are kept."""
    return DatasetStatus("s3://b/d", str(tmp_path), files=10, bytes=TOTAL, name="train")


@pytest.fixture
def report(status, tmp_path, clock):
    made = ProgressLog(status, tmp_path, clock)
    made.planned(2, 200)
    return made


def counts(report, files, count, discarded=0):
    report.meter.files += files
    report.meter.bytes += count
    report.meter.discarded += discarded


async def test_what_is_kept_and_what_has_come_is_done(report, status, clock):
    async with report.telling(lines=False):
        counts(report, 1, 110, discarded=10)
        clock.now += 2
        report.refresh()
        assert (status.files_done, status.bytes_done) == (3, 300)
        assert (status.rate, status.eta) == (55.0, 700 / 55)
        counts(report, 7, 700)
        clock.now += 2
    assert (status.files_done, status.bytes_done, status.eta) == (10, TOTAL, None)
    assert (status.seconds, status.rate) == (4.0, 810 / 4)
    clock.now += 100
    report.refresh()
    assert status.rate == 810 / 4, "what is over goes on telling how fast it was"


async def test_a_prefetch_that_is_tried_again_counts_what_the_first_has_brought_once(report, status, clock):
    async def fails():
        async with report.telling(lines=False):
            counts(report, 3, 300)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fails()
    report.planned(5, 500)
    async with report.telling(lines=False):
        counts(report, 5, 500)
    assert (status.files_done, status.bytes_done) == (10, TOTAL)


async def test_what_comes_before_there_is_a_plan_counts_as_having_come(report, status, clock):
    report.begin()
    counts(report, 4, 400)
    clock.now += 2
    report.pause()
    clock.now += 100  # a checkpoint is restored
    report.planned(4, 400)
    async with report.telling(lines=False):
        counts(report, 6, 600)
        clock.now += 2
    assert (status.files_done, status.bytes_done) == (10, TOTAL)
    assert (status.seconds, status.rate) == (4.0, TOTAL / 4)


async def test_no_more_is_told_than_there_is(report, status):
    """A store that sends more than was listed must not make a bar run over its end."""
    async with report.telling(lines=False):
        counts(report, 1, 5000)
    assert status.bytes_done == TOTAL


async def test_a_stall_has_no_end_in_sight(report, status, clock):
    async with report.telling(lines=False):
        clock.now += 60
        report.refresh()
        assert (status.rate, status.eta) == (0.0, None)


def test_how_full_the_volume_is_is_told_at_any_time(report, status):
    report.refresh()
    assert 0 < status.volume_free <= status.volume_bytes
    assert status.bytes_done == 200, "before it begins, the plan's figures stand"


def test_a_stage_that_is_not_there_tells_nothing(status, tmp_path):
    ProgressLog(status, tmp_path / "absent").refresh()
    assert status.volume_bytes == 0


async def test_a_line_is_logged_now_and_then(report, monkeypatch):
    monkeypatch.setattr(module, "LOG_EVERY", 0.0)
    structlog.reset_defaults()
    with capture_logs() as logged:
        async with report.telling():
            counts(report, 1, 100)
            async with asyncio.timeout(5):
                while len(logged) < 2:  # noqa: ASYNC110 - of a log, which sets no event
                    await asyncio.sleep(0)
    assert {entry["event"] for entry in logged} == {"prefetching"}
    first = {name: value for name, value in logged[0].items() if name not in {"bytes_per_second", "eta"}}
    assert first == {
        "dataset": "train",
        "files": 3,
        "of_files": 10,
        "bytes": 300,
        "of_bytes": TOTAL,
        "retries": 0,
        "handed_over": 0,
        "connections": 0,
        "event": "prefetching",
        "log_level": "info",
    }


def test_a_line_of_the_dataset_without_a_name_has_none(status):
    status.name = ""
    status.rate, status.eta = 12.6, 3.14159
    told = line(status)
    assert "dataset" not in told
    assert (told["bytes_per_second"], told["eta"]) == (13, 3.1)
