"""An agent for a process that has none: loaded only there."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from podferry.contract.kfp_inputs import read_kfp_inputs
from podferry.contract.lineage import lineage_of
from podferry.contract.pod_owner import KFP, PodOwner
from podferry.sidecar.control.http_client import AgentClient
from podferry.sidecar.launch.local_agent import LaunchOptions, launch

FUNCTION_FLAG = "--function_to_execute"


@contextmanager
def agent(
    options: Mapping[str, object], command: Sequence[str], *, polling: bool, run: str | None
) -> Iterator[AgentClient]:
    """A running agent; leaving the block drains and ends it.

    Args:
        options: Annotations as keywords.
        command: The process's own words, which name the lineage.
        polling: Scan in intervals even where inotify works.
        run: KFP's run id; None to find it in `command`, where KFP started that.

    Raises:
        InvalidWish: Something is wrong with the options.
    """
    given = dict(options)
    if given.get("lineage") is None:
        given["lineage"] = kfp_lineage(command)
    run = run or kfp_run(command)
    # On a terminal a bar shows the progress.
    started = launch(given, command, LaunchOptions(polling=polling, run_id=run, quiet=sys.stderr.isatty()))
    try:
        yield started.client
    finally:
        started.stop()


def kfp_run(command: Sequence[str]) -> str | None:
    """The run that KFP started this process for, None outside of KFP."""
    inputs = read_kfp_inputs(command)
    return (inputs.run_id or None) if inputs else None


def kfp_lineage(command: Sequence[str]) -> str | None:
    """The lineage of a KFP step that runs on this machine, None outside of KFP.

    The executor's words name temporary files, so the command as such would be new in every run.
    """
    inputs = read_kfp_inputs(command)
    if inputs is None or FUNCTION_FLAG not in command:
        return None
    task = command[command.index(FUNCTION_FLAG) + 1]
    return lineage_of(PodOwner("local", KFP, "", pipeline="local", task=task, inputs_hash=inputs.digest))
