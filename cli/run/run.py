"""`podferry run -- COMMAND…`: runs a command with an agent, on any machine."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any

import click

from podferry.cli.options.log_options import apply_verbosity, verbosity_options
from podferry.cli.options.named_options import CREATED, DATASET_OPTIONS, dataset_options, group_by_dataset
from podferry.cli.options.param_types import SECONDS
from podferry.cli.run.executable import exec_problem, start, start_problem
from podferry.cli.run.signals import NOTICE_SECONDS, Interrupted, RunSignals
from podferry.contract.errors import PermanentError, Problem, Unavailable
from podferry.contract.exit_codes import EXIT_DOUBTFUL, EXIT_FAILED, EXIT_NEVER, EXIT_NOT_DURABLE
from podferry.contract.http_api import (
    AGENT_VARIABLE,
    CHECKPOINTS_VARIABLE,
    RESTORED_FILE_VARIABLE,
    Durability,
    Gate,
)
from podferry.contract.suggest import did_you_mean
from podferry.sidecar.checkpoint.detect.trainer_processes import trainer_of
from podferry.sidecar.control.doubt_report import doubt_report
from podferry.sidecar.control.progress_bar import prefetch_bars
from podferry.sidecar.control.restored_file import write_restored
from podferry.sidecar.launch.durability_wait import DurabilityWait, names_of, report_left
from podferry.sidecar.launch.launch_options import LaunchOptions
from podferry.sidecar.launch.local_agent import LocalAgent, launch
from podferry.sidecar.runtime.messages import print_message, print_problems

LEFT_BEHIND_SECONDS = 30.0
"""For processes that outlive the command, such as savers in the background; services may live on."""
POLL_SECONDS = 0.05
"""Between two looks at them."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to wait: seconds at the end, and whether the progress is hidden."""

    durable_timeout: float
    quiet: bool


@click.command(
    options_metavar="[OPTIONS] --",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@dataset_options
@click.option("--checkpoints", metavar="URI", help="Destination of the checkpoints: a URI or a path.")
@click.option("--checkpoint-path", metavar="DIRECTORY", help=f"Where training writes them, {CREATED}")
@click.option(
    "--restore",
    metavar="WHICH",
    help="Checkpoint to resume from: auto (the newest sure one), latest (even doubtful), never, a name, or "
    "a URI.  [default: auto]",
)
@click.option(
    "--lineage",
    metavar="NAME",
    help="Its runs resume from each other.  [default: from COMMAND, directory and dataset]",
)
@click.option("--keep-local", type=int, help="Durable checkpoints to keep if memory runs low.  [default: 1]")
@click.option("--keep-remote", type=int, help="Checkpoints to keep at the destination.  [default: all]")
@click.option(
    "--complete",
    type=click.Choice(["auto", "marked"]),
    help="Upload checkpoints that look complete, or only marked ones.  [default: auto]",
)
@click.option("--upload-limit", metavar="SIZE", help="Maximum bytes uploaded per second, such as 50Mi.")
@click.option("--outputs", metavar="URI", help="Destination of the output directory: a URI or a path.")
@click.option("--output-path", metavar="DIRECTORY", help=f"Where training writes outputs, {CREATED}")
@click.option("--outputs-every", metavar="TIME", help="Upload interval, such as 60s.  [default: at the end]")
@click.option("--endpoint", metavar="URL", help="URL of the object store.  [default: the vendor's]")
@click.option("--region", metavar="NAME", help="Region of the object store.")
@click.option(
    "--secret-dir",
    metavar="DIRECTORY",
    help="Directory with one file per credential, such as AWS_PROFILE.  [default: the environment]",
)
@click.option("--checkpoints-endpoint", metavar="URL", help="--endpoint for checkpoints only.")
@click.option("--checkpoints-region", metavar="NAME", help="--region for checkpoints only.")
@click.option("--checkpoints-secret-dir", metavar="DIRECTORY", help="--secret-dir for checkpoints only.")
@click.option("--outputs-endpoint", metavar="URL", help="--endpoint for outputs only.")
@click.option("--outputs-region", metavar="NAME", help="--region for outputs only.")
@click.option("--outputs-secret-dir", metavar="DIRECTORY", help="--secret-dir for outputs only.")
@click.option("--polling", is_flag=True, help="Scan at intervals, without inotify.")
@click.option(
    "--durable-timeout",
    type=SECONDS,
    default=600.0,
    help="Seconds to wait at the end for the last uploads; 0: only look what is durable.",
)
@verbosity_options
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def command(command: tuple[str, ...], durable_timeout: float, polling: bool, **options: Any) -> int:
    """Run COMMAND with its dataset staged and its checkpoints uploaded.

    For example: podferry run --dataset ./data --checkpoints s3://bucket/run -- python train.py

    COMMAND finds its directories in PODFERRY_DATASET (PODFERRY_DATASET_NAME for a dataset with a name),
    PODFERRY_CHECKPOINTS, PODFERRY_OUTPUTS and, if it resumes, PODFERRY_RESTORED; PODFERRY_RESTORED_FILE is a
    file with that path, as in a pod, and PODFERRY_LINEAGE the lineage. The exit code is that of COMMAND. If
    COMMAND succeeds, it is 74 if its last checkpoint or its outputs are not uploaded, and 76 if nothing
    proves that its last checkpoint is complete.
    """
    _reject_option(command[0])
    quiet = options.pop("quiet")
    level, log_format = apply_verbosity(
        options.pop("log_format"), quiet=quiet, verbose=options.pop("verbose")
    )
    if (found := start_problem(command[0])) is not None:
        print_problems([found[1]])
        return found[0]
    signals = RunSignals()
    try:
        options |= group_by_dataset({name: options[name] for name in DATASET_OPTIONS})
        agent = launch(
            options, command, LaunchOptions(polling=polling, log_level=level, log_format=log_format)
        )
    except PermanentError as error:
        print_problems(error.problems)
        return EXIT_NEVER
    print_problems(agent.notes, "yellow")
    try:
        return _run(command, agent, signals, RunOptions(durable_timeout, quiet))
    finally:
        _stop(agent, signals)


def _wait_for_gate(agent: LocalAgent, *, quiet: bool) -> Gate:
    """Wait until training may start; the progress is bars on a terminal, elsewhere lines."""
    shown = ""
    with prefetch_bars(hidden=quiet) as bars:

        def show(gate: Gate) -> None:
            nonlocal shown
            if bars.visible:
                bars.show(agent.client.status())
            elif gate.summary != shown:
                print_message(gate.summary)
                shown = gate.summary

        return agent.client.wait_for_gate(show, bars.poll_seconds)


def _reject_option(word: str) -> None:
    """Refuse a command that looks like an option: it is a misspelled one."""
    if word.startswith("-"):
        known = [name for option in click.get_current_context().command.params for name in option.opts]
        remedy = did_you_mean(word.partition("=")[0], known, "Put -- before the command.")
        raise click.UsageError(f"no such option {word!r}. {remedy}")


def _run(command: tuple[str, ...], agent: LocalAgent, signals: RunSignals, options: RunOptions) -> int:
    """Stage, train and wait; the exit code."""
    try:
        gate = signals.interruptible(lambda: _wait_for_gate(agent, quiet=options.quiet))
    except Interrupted as interrupted:
        print_message(f"podferry: stopped by {interrupted} before training started")
        return interrupted.exit_code
    except Unavailable as error:
        print_problems(error.problems)
        return EXIT_FAILED
    if not gate.open:
        print_problems(gate.problems)
        return EXIT_FAILED if gate.retryable else EXIT_NEVER
    print_message(gate.summary)
    environment = _environment(gate, agent)
    code = _train(command, environment, agent, signals)
    left = _left_behind(environment.get(CHECKPOINTS_VARIABLE), signals) if code == 0 else False
    unclear = signals.ended_trainer or left
    durability = _wait(agent, signals, options.durable_timeout, code, interrupted=unclear)
    return _conclude(code, durability, doubt_report(durability, agent.client))


def _environment(gate: Gate, agent: LocalAgent) -> dict[str, str]:
    """The trainer's variables."""
    environment = {AGENT_VARIABLE: agent.url, **gate.environment}
    if CHECKPOINTS_VARIABLE in environment:
        file = agent.run.directory.restored_file
        write_restored(gate, file)
        environment[RESTORED_FILE_VARIABLE] = str(file)
    return environment


def _train(
    command: tuple[str, ...], environment: dict[str, str], agent: LocalAgent, signals: RunSignals
) -> int:
    """Run the command; its exit code, 128 + N after signal N, 126 or 127 if it cannot be started."""
    lock = agent.lock_for_trainer()
    try:
        with signals.blocked() as in_child:
            trainer = start(command, {**os.environ, **environment}, lock, in_child)
    except OSError as error:
        code, problem = exec_problem(command[0], error)
        print_problems([problem])
        return code
    finally:
        os.close(lock)
    code = signals.wait_for(trainer)
    return 128 - code if code < 0 else code


def _left_behind(checkpoints: str | None, signals: RunSignals) -> bool:
    """Whether processes that the command has left behind still run after a while: they may save."""
    if checkpoints is None or signals.ended_trainer:
        return False
    processes, began = trainer_of(checkpoints), time.monotonic()
    said = False
    while living := processes.look():
        waited = time.monotonic() - began
        if waited > LEFT_BEHIND_SECONDS:
            return True
        if waited > NOTICE_SECONDS and not said:
            said = True
            names = ", ".join(map(str, living))
            print_message(
                f"podferry: waiting up to {LEFT_BEHIND_SECONDS:.0f} s for process {names} of the command"
            )
        try:
            signals.interruptible(lambda: time.sleep(POLL_SECONDS))
        except Interrupted:
            return True
    return False


def _wait(
    agent: LocalAgent, signals: RunSignals, limit: float, code: int, *, interrupted: bool = False
) -> Durability:
    """Wait for the last uploads: a signal ends the wait, another one the look after it."""
    wait = DurabilityWait(agent, limit, code, signals.interruptible, interrupted=interrupted)
    try:
        return wait.run()
    except Interrupted:
        agent.detach()
    try:
        return wait.look()
    except Interrupted:
        return wait.unknown()


def _stop(agent: LocalAgent, signals: RunSignals) -> None:
    """Stop the agent, and name what is left; a signal ends the wait for it."""
    try:
        signals.interruptible(agent.stop)
    except Interrupted:
        agent.detach()
    report_left(agent)


def _conclude(code: int, durability: Durability, doubt: Problem | None) -> int:
    """Report what is durable and what is doubtful; return the exit code."""
    if durability.last is not None:
        age = f"{max(time.time() - durability.last.durable_at, 0.0):.1f} s ago"
        print_message(f"last durable checkpoint: {durability.last.name}, {age}")
    if doubt is not None:
        print_problems([doubt], "yellow")
    if durability.durable:
        return code or (EXIT_DOUBTFUL if doubt is not None else 0)
    print_message(f"not durable: {names_of(durability)}", "red")
    print_problems(durability.problems)
    return code or EXIT_NOT_DURABLE
