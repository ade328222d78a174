"""Uploads what a killed run has left, by an agent over its directories that drains at once."""

from __future__ import annotations

import asyncio
import shutil
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from podferry.contract.destination.commit import Commit
from podferry.contract.errors import Problem, Refused
from podferry.contract.http_api import Durability
from podferry.contract.lineage import lineage_problem
from podferry.contract.spec import FerrySpec
from podferry.contract.spec_json import decode_spec, encode_spec
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.config.directories import Directories
from podferry.sidecar.config.run_directory import RunDirectory
from podferry.sidecar.config.store_access import store_config
from podferry.sidecar.launch.launch_options import LaunchOptions
from podferry.sidecar.launch.leftover_contents import Leftover
from podferry.sidecar.launch.leftovers import claim
from podferry.sidecar.launch.local_agent import LocalAgent, start_agent
from podferry.sidecar.launch.local_directories import LocalRun
from podferry.sidecar.launch.run_record import RunRecord, read_record
from podferry.sidecar.launch.secret_dirs import SecretDirs
from podferry.sidecar.runtime.file_lock import release
from podferry.sidecar.state.journal import Journal
from podferry.storage.factory import open_store


def upload(leftover: Leftover, options: LaunchOptions, lineage: str | None = None) -> Durability:
    """Upload a leftover; its directories are removed if all of it is durable then.

    Args:
        leftover: What to upload.
        options: Of the agent; its grace is the limit of the upload.
        lineage: Another lineage than that of the run, which gets everything.

    Raises:
        Refused: It cannot be uploaded: a process uses it, it is not known where it belongs, or another run
            has committed since.
        InvalidSpec: The lineage is not valid.
    """
    if leftover.problem:
        raise Refused.of(f"{leftover.id} cannot be uploaded", leftover.problem)
    run = RunDirectory(Path(leftover.paths[-1]))
    lock = claim(leftover)
    try:
        record = read_record(run.record)
        spec = _spec(record, lineage)
        if lineage is None:
            asyncio.run(_refuse_newer(spec, record, Journal(run.control).agent.agent_id, leftover.id))
        else:
            _begin_again(run)
        run.reopen()
    except BaseException:
        release(lock)
        raise
    local, own = LocalRun(run, Path(record.data)), _options(record, options.grace_seconds)
    agent = start_agent(encode_spec(spec).decode(), _directories(record, run), own, local, lock)
    try:
        return _drain(agent, leftover, options.grace_seconds)
    finally:
        agent.stop()


def _options(record: RunRecord, grace_seconds: float) -> LaunchOptions:
    """The run's own options, with less in the log."""
    return LaunchOptions(
        grace_seconds,
        record.polling,
        record.run_id,
        secrets=SecretDirs({}, record.checkpoints_secret, record.outputs_secret),
        program=record.program,
        log_level="warning",
    )


def _drain(agent: LocalAgent, leftover: Leftover, seconds: float) -> Durability:
    gate = agent.client.wait_for_gate()
    if not gate.open:
        hopeless = not gate.retryable
        return Durability(False, leftover.not_durable, gate.problems, hopeless=hopeless)
    return agent.client.wait_durable(seconds, final=True, ending=True)


def _spec(record: RunRecord, lineage: str | None) -> FerrySpec:
    """The run's spec without its datasets, in another lineage if one is given."""
    problem = lineage_problem(lineage) if lineage is not None else None
    if problem is not None:
        raise Refused(problem)
    spec = decode_spec(record.spec.encode(), "the record of the run")
    return msgspec.structs.replace(spec, datasets=(), lineage=lineage or spec.lineage)


def _directories(record: RunRecord, run: RunDirectory) -> Directories:
    checkpoints, holds, outputs = (
        None if name is None else Path(name) for name in (record.checkpoints, record.holds, record.outputs)
    )
    return Directories(
        control=run.control,
        checkpoints=checkpoints,
        holds=holds,
        outputs=outputs,
        temporary=tuple(map(Path, record.temporary)),
        run=run,
    )


def _begin_again(run: RunDirectory) -> None:
    """Forget what is durable and what was sent: another lineage has none of it."""
    before = Journal(run.control).agent
    shutil.rmtree(run.control)
    journal = Journal(run.control)
    journal.agent.gate, journal.agent.datasets = before.gate, before.datasets
    journal.save()


async def _refuse_newer(spec: FerrySpec, record: RunRecord, agent_id: str, name: str) -> None:
    """Refuse if another run has committed since: its checkpoints would no longer be the newest."""
    if spec.checkpoints is None or spec.lineage is None:
        return
    secret = Path(record.checkpoints_secret) if record.checkpoints_secret else None
    store = open_store(spec.checkpoints.parsed, store_config(spec.checkpoints.access, secret))
    try:
        history = await CommitReader(LineageStore(store, spec.lineage)).history()
        newest = await anext(history.newest_first(), None)
    finally:
        await store.close()
    if newest is not None and newest.agent_id != agent_id and _is_later(newest, record):
        what = f"another run has committed to {spec.lineage} since {name} began"
        remedy = f"Upload it to a lineage of its own: podferry leftovers upload {name} --lineage NAME"
        raise Refused(Problem(what, f"{newest.name} at {newest.created:%Y-%m-%d %H:%M:%S}", remedy))


def _is_later(commit: Commit, record: RunRecord) -> bool:
    return commit.created > datetime.fromtimestamp(record.started_at, UTC)
