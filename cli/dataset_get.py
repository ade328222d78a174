"""`podferry dataset get URI DIRECTORY`: the prefetch alone, in this process.

A program of its own that starts at once: it parses its own words, and what only some datasets need is loaded
where they need it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path
from typing import Any

import uvloop

from podferry.contract.errors import FerryError, InvalidSpec
from podferry.contract.quantity import format_bytes
from podferry.contract.status import AgentPhase, DatasetStatus, Status
from podferry.sidecar.config.directories import ensure_dir, sibling_dir
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.control.progress_bar import PrefetchBars, prefetch_bars
from podferry.sidecar.control.small_options import add_options
from podferry.sidecar.dataset.dataset_job import DatasetJob, DatasetPlacement
from podferry.sidecar.dataset.fit_check import refuse_unless_fits
from podferry.sidecar.fetch.worker_prefork import prefork, release_idle
from podferry.sidecar.launch.local_spec import local_spec
from podferry.sidecar.runtime.concurrency import retry

PROGRAM = "podferry dataset get"
DESCRIPTION = """Bring a dataset into DIRECTORY: whole, or not at all where it does not fit.

A repetition fetches what is missing, and removes what the dataset no longer has. What podferry has to
remember of DIRECTORY lies beside it, in DIRECTORY.podferry."""
OPTIONS_OF_GET = (
    *("dataset", "dataset_path", "--include", "--exclude", "--shard", "--unpack", "--file-mode"),
    *("--endpoint", "--region", "--secret-dir"),
)
REFUSED = 1
"""Exit code where it ends with an error of ours, as other verbs have it."""


def main(words: list[str]) -> int:
    """Parse, bring, and say how it was; the exit code."""
    try:
        wishes = vars(_parser().parse_args(words))
    except SystemExit as end:
        return int(end.code or 0)
    began = time.monotonic()
    prefork()
    try:
        work = _work(wishes, wishes.pop("secret_dir"))
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_bring(work))
    except FerryError as error:
        for problem in error.problems:
            print(f"podferry: {problem}", file=sys.stderr)
        return REFUSED
    print(closing_line(work.status, time.monotonic() - began))
    return 0


def closing_line(status: DatasetStatus, seconds: float) -> str:
    """What was brought, in how many seconds, listing included, and at how many millions of bytes a second."""
    came = status.transfer.bytes - status.transfer.discarded
    rate = f" ({came / 1e6 / seconds:.0f} MB/s)" if came else ""
    kept = f", {status.files_kept:,} of them kept" if status.files_kept else ""
    files = f"{status.files:,} file{'s' * (status.files != 1)}"
    return f"{files}, {format_bytes(status.bytes)} in {seconds:.2f} s{rate} at {status.path}{kept}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        PROGRAM,
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    return add_options(parser, *OPTIONS_OF_GET)


def _work(wishes: dict[str, Any], secret: Path | None) -> DatasetJob:
    # The base is for parts without a path, and this one has its own.
    [spec] = local_spec(wishes, [], Path()).datasets
    directory = Path(spec.path)
    InvalidSpec.raise_any(filter(None, [ensure_dir(directory)]))
    return DatasetJob(spec, DatasetPlacement(directory, sibling_dir(directory), secret), PrefetchSettings())


async def _bring(work: DatasetJob) -> None:
    try:
        try:
            placed = await retry(PrefetchSettings().attempts, work.plan)
            refuse_unless_fits([placed], in_pod=False)
        except FerryError:
            work.abandon()
            raise
        with prefetch_bars() as bars:
            showing = asyncio.create_task(_show(work, bars))
            try:
                await work.fetch(lines=False)
            finally:
                showing.cancel()
    finally:
        await work.close()
        await release_idle()


async def _show(work: DatasetJob, bars: PrefetchBars) -> None:
    status = Status(stage=AgentPhase.PREFETCHING, datasets=[work.status])
    while True:
        work.report.refresh()
        bars.show(status)
        await asyncio.sleep(bars.poll_seconds)
