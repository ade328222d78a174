import asyncio

import pytest
import structlog
from structlog.testing import capture_logs

from podferry.contract.status import DatasetStatus
from podferry.sidecar.state import progress_log as module
from podferry.sidecar.state.progress_log import ProgressLog, log_fields
from tests.support.patience import PATIENCE

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
def progress(status, tmp_path, clock):
    made = ProgressLog(status, tmp_path, clock)
    made.planned(2, 200)
    return made


def counts(progress, files, count, discarded=0):
    progress.counters.files += files
    progress.counters.bytes += count
    progress.counters.discarded += discarded


async def test_kept_and_fetched_files_are_done(progress, status, clock):
    async with progress.reporting(log_progress=False):
        counts(progress, 1, 110, discarded=10)
        clock.now += 2
        progress.refresh()
        assert (status.files_done, status.bytes_done) == (3, 300)
        assert (status.rate, status.eta) == (55.0, 700 / 55)
        counts(progress, 7, 700)
        clock.now += 2
    assert (status.files_done, status.bytes_done, status.eta) == (10, TOTAL, None)
    assert (status.seconds, status.rate) == (4.0, 810 / 4)
    clock.now += 100
    progress.refresh()
    assert status.rate == 810 / 4, "a finished prefetch keeps its average rate"


async def test_a_retried_prefetch_counts_what_the_first_attempt_fetched_once(progress, status, clock):
    async def fails():
        async with progress.reporting(log_progress=False):
            counts(progress, 3, 300)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fails()
    progress.planned(5, 500)
    async with progress.reporting(log_progress=False):
        counts(progress, 5, 500)
    assert (status.files_done, status.bytes_done) == (10, TOTAL)


async def test_what_was_fetched_before_the_plan_counts(progress, status, clock):
    progress.start()
    counts(progress, 4, 400)
    clock.now += 2
    progress.pause()
    clock.now += 100  # a checkpoint is restored
    progress.planned(4, 400)
    async with progress.reporting(log_progress=False):
        counts(progress, 6, 600)
        clock.now += 2
    assert (status.files_done, status.bytes_done) == (10, TOTAL)
    assert (status.seconds, status.rate) == (4.0, TOTAL / 4)


async def test_progress_never_exceeds_the_total(progress, status):
    """A store that sends more than was listed must not push a progress bar beyond its end."""
    async with progress.reporting(log_progress=False):
        counts(progress, 1, 5000)
    assert status.bytes_done == TOTAL


async def test_a_stall_has_no_eta(progress, status, clock):
    async with progress.reporting(log_progress=False):
        clock.now += 60
        progress.refresh()
        assert (status.rate, status.eta) == (0.0, None)


def test_refresh_reads_how_full_the_volume_is(progress, status):
    progress.refresh()
    assert 0 < status.volume_free <= status.volume_bytes
    assert status.bytes_done == 200, "before the prefetch starts, the status has the figures of the plan"


def test_a_missing_directory_leaves_the_volume_unknown(status, tmp_path):
    ProgressLog(status, tmp_path / "absent").refresh()
    assert status.volume_bytes == 0


async def test_a_line_is_logged_every_few_seconds(progress, monkeypatch):
    monkeypatch.setattr(module, "LOG_SECONDS", 0.0)
    structlog.reset_defaults()
    with capture_logs() as logged:
        async with progress.reporting():
            counts(progress, 1, 100)
            async with asyncio.timeout(PATIENCE):
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


def test_the_unnamed_dataset_is_not_named_in_the_log(status):
    status.name = ""
    status.rate, status.eta = 12.6, 3.14159
    fields = log_fields(status)
    assert "dataset" not in fields
    assert (fields["bytes_per_second"], fields["eta"]) == (13, 3.1)
