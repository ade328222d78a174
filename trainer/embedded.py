"""Starts an agent for a process without an injected one; imported only then."""

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
    options: Mapping[str, object], command: Sequence[str], *, polling: bool, run_id: str | None
) -> Iterator[AgentClient]:
    """Run an agent for the block; at the end it drains and exits. Raises `InvalidSpec` for invalid options.

    `command` determines the default lineage, and KFP's run id if `run_id` is None; `polling` avoids inotify.
    """
    if options.get("lineage") is None:
        options = {**options, "lineage": kfp_lineage(command)}
    run_id = run_id or kfp_run_id(command)
    # On a terminal a progress bar replaces the log.
    launch_options = LaunchOptions(polling=polling, run_id=run_id, quiet=sys.stderr.isatty())
    launched = launch(options, command, launch_options)
    try:
        yield launched.client
    finally:
        launched.stop()


def kfp_run_id(command: Sequence[str]) -> str | None:
    """The id of the KFP run that started this process, or None."""
    inputs = read_kfp_inputs(command)
    return (inputs.run_id or None) if inputs else None


def kfp_lineage(command: Sequence[str]) -> str | None:
    """The lineage of a KFP step that runs on this machine, or None outside KFP.

    The executor's command line contains temporary files, so the command itself would differ in every run.
    """
    inputs = read_kfp_inputs(command)
    if inputs is None or FUNCTION_FLAG not in command:
        return None
    task = command[command.index(FUNCTION_FLAG) + 1]
    return lineage_of(PodOwner("local", KFP, "", pipeline="local", task=task, inputs_hash=inputs.digest))
