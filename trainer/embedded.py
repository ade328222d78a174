"""Starts an agent for a process without an injected one; imported only then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from podferry.contract.http_api import Durability
from podferry.contract.kfp_inputs import read_kfp_inputs
from podferry.contract.lineage import lineage_of
from podferry.contract.pod_owner import KFP, PodOwner
from podferry.sidecar.launch.durability_wait import DurabilityWait, report_left
from podferry.sidecar.launch.launch_options import LaunchOptions
from podferry.sidecar.launch.local_agent import LocalAgent, launch
from podferry.sidecar.runtime.messages import print_problems
from podferry.trainer.arguments import FUNCTION_FLAG
from podferry.trainer.this_program import this_command


@contextmanager
def agent(
    options: Mapping[str, object], argv: Sequence[str], *, polling: bool, run_id: str | None
) -> Iterator[LocalAgent]:
    """Run an agent for the block; at the end it drains and exits. Raises `InvalidSpec` for invalid options.

    `argv` determines the lineage of a KFP step, and KFP's run id if `run_id` is None; `polling` avoids
    inotify.
    """
    if options.get("lineage") is None:
        options = {**options, "lineage": kfp_lineage(argv)}
    run_id = run_id or kfp_run_id(argv)
    launch_options = LaunchOptions(polling=polling, run_id=run_id, argv=argv)
    launched = launch(options, this_command(), launch_options)
    print_problems(launched.notes, "yellow")
    try:
        yield launched
    finally:
        launched.stop()
        report_left(launched)


def wait_durable(agent: LocalAgent, limit: float, exit_code: int | None) -> Durability:
    """Wait until everything is durable, with the bounds of `podferry run`; Ctrl-C ends it.

    Args:
        agent: It continues alone after Ctrl-C, and after a short limit.
        limit: Seconds.
        exit_code: Of the trainer; None if unknown.
    """
    try:
        return DurabilityWait(agent, limit, exit_code).run()
    except KeyboardInterrupt:
        agent.detach()
        raise


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
