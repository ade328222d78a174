"""`podferry dataset get URI DIRECTORY`: downloads a dataset, in this process.

It starts without click, and imports code for special datasets only when one needs it.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path
from typing import Any

import uvloop

from podferry.cli.options.argument_names import DIRECTORY, dataset_of_arguments
from podferry.contract.cache_api import Holder
from podferry.contract.errors import FerryError, InvalidSpec, Refused, TemporaryError
from podferry.contract.quantity import format_bytes
from podferry.contract.status import AgentPhase, DatasetStatus, Status
from podferry.sidecar.config.local_path import ensure_dir, sibling_dir
from podferry.sidecar.config.tuning import Tuning
from podferry.sidecar.control.command_options import HelpFormatter, add_options
from podferry.sidecar.control.progress_bar import PrefetchBars, prefetch_bars
from podferry.sidecar.dataset.dataset_job import DatasetJob, PlannedDataset
from podferry.sidecar.dataset.dataset_placement import DatasetPlacement
from podferry.sidecar.dataset.fit_check import ArgumentNames, fit_problems
from podferry.sidecar.fetch.workers.processes import prefork, release_idle
from podferry.sidecar.runtime.retry import retry
from podferry.storage.checksum.checksums import AWS_CRC_KINDS, load_aws_crcs
from podferry.storage.engines import checksums_of, has_connection_pool

PROGRAM = "podferry dataset get"
DESCRIPTION = """Download a dataset into DIRECTORY, completely, or not at all if it does not fit. Run it
again to resume: it fetches what is missing, continues partial files, and removes files that the dataset no
longer has. podferry keeps its state in DIRECTORY.podferry, next to DIRECTORY."""
NAMES = ArgumentNames(DIRECTORY)
SETTINGS = Tuning().prefetch
"""A server that restarts while a large dataset is fetched does not end the download."""
OPTIONS_OF_GET = (
    *("dataset", "dataset_path", "--include", "--exclude", "--shard", "--unpack", "--file-mode"),
    *("--endpoint", "--region", "--secret-dir", "--cache"),
)


def main(arguments: list[str]) -> int:
    """Parse, download, print a summary; return the exit code."""
    options = vars(_parser().parse_args(arguments))
    started = time.monotonic()
    scheme = (options["dataset"] or "").partition("://")[0]
    _load_checksums(scheme)
    if has_connection_pool(scheme) or options["cache"]:
        prefork()
    job = _dataset_job(options, options.pop("secret_dir"), options.pop("cache"))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_download(job))
    print(summary(job.status, time.monotonic() - started))
    return 0


def _load_checksums(scheme: str) -> None:
    """Load what computes CRCs if the store has them: once for all workers, who would take 40 ms each."""
    if any(kind.upper() in checksums_of(scheme) for kind in AWS_CRC_KINDS):
        load_aws_crcs()


def summary(status: DatasetStatus, seconds: float) -> str:
    """Files, bytes, seconds (listing included) and the rate."""
    received = status.transfer.bytes - status.transfer.discarded
    rate = f" ({format_bytes(int(received / seconds))}/s)" if received else ""
    kept = f", {status.files_kept:,} of them kept" if status.files_kept else ""
    files = f"{status.files:,} file{'s' * (status.files != 1)}"
    return f"{files}, {format_bytes(status.bytes)} in {seconds:.2f} s{rate} at {status.path}{kept}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        PROGRAM, description=DESCRIPTION, allow_abbrev=False, formatter_class=HelpFormatter
    )
    return add_options(parser, *OPTIONS_OF_GET)


def _dataset_job(options: dict[str, Any], secret_dir: Path | None, cache: str | None) -> DatasetJob:
    spec = dataset_of_arguments(options)
    directory = Path(spec.path)
    InvalidSpec.raise_any(filter(None, [ensure_dir(directory)]))
    holder = Holder(cache) if cache is not None else None
    placement = DatasetPlacement(directory, sibling_dir(directory), secret_dir, holder=holder, names=NAMES)
    return DatasetJob(spec, placement, SETTINGS)


async def _download(job: DatasetJob) -> None:
    try:
        try:
            planned = await _plan(job)
            Refused.raise_any(fit_problems([planned.sized], in_pod=False))
        except FerryError:
            job.abandon()
            raise
        with prefetch_bars() as bars:
            showing = asyncio.create_task(_show_progress(job, bars))
            try:
                await planned.fetch(log_progress=False)
            finally:
                showing.cancel()
    finally:
        await job.close()
        await release_idle()


async def _plan(job: DatasetJob) -> PlannedDataset:
    """The plan. A store may restart during its listing; one that never answered is refused soon."""
    try:
        return await retry(SETTINGS.attempts, job.plan)
    except TemporaryError:
        if not job.answered:
            raise
        return await retry(SETTINGS.attempts, job.plan, SETTINGS.patience_seconds)


async def _show_progress(job: DatasetJob, bars: PrefetchBars) -> None:
    status = Status(phase=AgentPhase.PREFETCHING, datasets=[job.status])
    while True:
        job.progress.refresh()
        bars.show(status)
        await asyncio.sleep(bars.poll_seconds)
