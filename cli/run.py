"""`podferry run -- COMMAND…`: runs a command with an agent, on any machine."""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from podferry.cli.named_options import CREATED, DATASET_OPTIONS, dataset_options, group_by_dataset
from podferry.cli.output import print_problems
from podferry.contract.errors import PermanentError, Problem
from podferry.contract.http_api import (
    AGENT_VARIABLE,
    EXIT_DOUBTFUL,
    EXIT_NEVER,
    EXIT_NOT_DURABLE,
    Durability,
)
from podferry.contract.suggest import did_you_mean
from podferry.sidecar.control.doubt_report import doubt_report
from podferry.sidecar.control.progress_bar import prefetch_bars
from podferry.sidecar.launch.local_agent import LaunchOptions, LocalAgent, launch

FORWARDED_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
EXIT_NOT_FOUND = 127
"""The exit code of shells if a command cannot be started."""


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@dataset_options
@click.option("--checkpoints", metavar="URI", help="Destination of the checkpoints: a URI or a path.")
@click.option("--checkpoint-path", metavar="DIRECTORY", help=f"Where training writes them, {CREATED}")
@click.option(
    "--restore",
    metavar="WHICH",
    help="auto, latest, never, the name of a checkpoint, or the URI of one.  [default: auto]",
)
@click.option("--lineage", metavar="NAME", help="Its runs resume from each other.  [default: from COMMAND]")
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
@click.option("--checkpoints-endpoint", metavar="URL", help="--endpoint for checkpoints only.")
@click.option("--checkpoints-region", metavar="NAME", help="--region for checkpoints only.")
@click.option("--outputs-endpoint", metavar="URL", help="--endpoint for outputs only.")
@click.option("--outputs-region", metavar="NAME", help="--region for outputs only.")
@click.option("--polling", is_flag=True, help="Scan at intervals, without inotify.")
@click.option(
    "--durable-timeout", type=click.FloatRange(min=0), default=600.0, help="Seconds to wait at the end."
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def command(command: tuple[str, ...], durable_timeout: float, polling: bool, **options: Any) -> int:
    """Run COMMAND with its dataset staged and its checkpoints uploaded.

    COMMAND finds its directories in PODFERRY_DATASET (PODFERRY_DATASET_NAME for a dataset with a name),
    PODFERRY_CHECKPOINTS, PODFERRY_OUTPUTS and, if it resumes, PODFERRY_RESTORED. The exit code is that of
    COMMAND. If COMMAND succeeds, it is 74 if its last checkpoint or its outputs are not uploaded, and 76 if
    nothing proves that its last checkpoint is complete.
    """
    _reject_option(command[0])
    if shutil.which(command[0]) is None:
        print_problems([Problem(f"{command[0]} cannot be started", "there is no such program")])
        return EXIT_NOT_FOUND
    try:
        options |= group_by_dataset({name: options[name] for name in DATASET_OPTIONS})
        agent = launch(options, command, LaunchOptions(polling=polling, quiet=sys.stderr.isatty()))
    except PermanentError as error:
        print_problems(error.problems)
        return EXIT_NEVER
    with _stopped_at_end(agent):
        with prefetch_bars() as bars:
            gate = agent.client.wait_for_gate(lambda _: bars.show(agent.client.status()), bars.poll_seconds)
        if not gate.open:
            print_problems(gate.problems)
            return 1 if gate.retryable else EXIT_NEVER
        click.echo(gate.summary, err=True)
        code = _train(command, {AGENT_VARIABLE: agent.url, **gate.environment})
        durability = _wait_durable(agent, durable_timeout, code)
        return _conclude(code, durability, doubt_report(durability, agent.client))


def _reject_option(word: str) -> None:
    """Refuse a command that looks like an option: it is a misspelled one."""
    if word.startswith("-"):
        known = [name for option in click.get_current_context().command.params for name in option.opts]
        remedy = did_you_mean(word.partition("=")[0], known, "Put -- before the command.")
        raise click.UsageError(f"no such option {word!r}. {remedy}")


class _WaitInterrupted(Exception):
    """A signal has ended the wait at the end."""


def _interrupt_wait(number: int, _: object) -> None:
    raise _WaitInterrupted(signal.Signals(number).name)


def _handle_signals(handler: Callable[[int, Any], None] | signal.Handlers) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handler)


def _wait_durable(agent: LocalAgent, timeout: float, code: int) -> Durability:
    """Wait for durability. SIGINT or SIGTERM ends the wait; the agent continues alone within its grace."""
    _handle_signals(_interrupt_wait)
    try:
        return agent.client.wait_durable(timeout, final=True, exit_code=code)
    except _WaitInterrupted:
        _handle_signals(signal.SIG_IGN)  # the rest takes no time
        agent.detach()
        return agent.client.wait_durable(0, final=True, exit_code=code)
    finally:
        _handle_signals(signal.SIG_IGN)


@contextmanager
def _stopped_at_end(agent: LocalAgent) -> Iterator[None]:
    try:
        yield
    finally:
        _handle_signals(_interrupt_wait)
        try:
            agent.stop()
        except _WaitInterrupted:
            agent.detach()
        _handle_signals(signal.SIG_IGN)


def _train(command: tuple[str, ...], environment: dict[str, str]) -> int:
    """Run the command; return its exit code, 128 + N after signal N, 127 if it cannot be started."""
    try:
        child = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            preexec_fn=_terminate_with_parent,  # noqa: PLW1509 - this process has no other thread
        )
    except OSError as error:
        click.secho(f"podferry: {shlex.join(command)} cannot be started: {error}", err=True, fg="red")
        return EXIT_NOT_FOUND
    # A terminal sends Ctrl-C to the child as well; other signals reach only this process and are forwarded.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in FORWARDED_SIGNALS:
        signal.signal(number, lambda received, _: child.send_signal(received))
    code = child.wait()
    return 128 - code if code < 0 else code


def _terminate_with_parent() -> None:
    """Ask the kernel for SIGTERM when the parent is killed: no one would keep the trainer's data.

    Source: prctl(2), PR_SET_PDEATHSIG. On other systems than Linux the trainer continues.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def _conclude(code: int, durability: Durability, doubt: Problem | None) -> int:
    """Report what is durable and what is doubtful; return the exit code."""
    if durability.last is not None:
        age = f"{max(time.time() - durability.last.durable_at, 0.0):.1f} s ago"
        click.echo(f"last durable checkpoint: {durability.last.name}, {age}", err=True)
    if doubt is not None:
        print_problems([doubt], "yellow")
    if durability.durable:
        return code or (EXIT_DOUBTFUL if doubt is not None else 0)
    click.secho(f"not durable: {', '.join(durability.pending) or 'unknown'}", err=True, fg="red")
    print_problems(durability.problems)
    return code or EXIT_NOT_DURABLE
