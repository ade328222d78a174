"""`podferry run -- COMMAND…`: the agent around a command, on any machine."""

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

from podferry.cli.named_options import by_dataset
from podferry.contract.api import AGENT_VARIABLE, EXIT_NEVER, EXIT_NOT_DURABLE, Durability, Gate
from podferry.contract.errors import PermanentError, Problem
from podferry.contract.suggest import did_you_mean
from podferry.sidecar.control.http_client import AgentClient
from podferry.sidecar.control.progress_bar import prefetch_bars
from podferry.sidecar.launch.local_agent import LaunchOptions, LocalAgent, launch

PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
EXIT_NOT_FOUND = 127
"""A command that cannot be started, as shells have it."""
OF_DATASETS = ("dataset", "dataset_path", "include", "exclude", "file_mode", "unpack", "shard")
"""Options that each dataset may have: `NAME=VALUE` is that of the dataset NAME."""


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--dataset",
    multiple=True,
    metavar="[NAME=]URI",
    help="What to bring: a URI, a reference, or a path. Several have names, with which the options below "
    "may begin: --dataset test=./t --include test=*.jpg.",
)
@click.option(
    "--dataset-path",
    multiple=True,
    metavar="DIRECTORY",
    help="Where training reads it.  [default: a directory in memory]",
)
@click.option("--include", multiple=True, metavar="GLOB", help="Bring these files alone, such as *.jpg.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Leave these files out.")
@click.option("--file-mode", multiple=True, metavar="MODE", help="Of its files.  [default: 0644]")
@click.option(
    "--unpack",
    multiple=True,
    metavar="WHEN",
    help="auto (what `podferry dataset pack` made), never, or always (all archives).  [default: auto]",
)
@click.option(
    "--shard",
    multiple=True,
    metavar="RANK/COUNT",
    help="Bring a part; auto takes the launcher's, such as torchrun's.  [default: all]",
)
@click.option("--checkpoints", help="Destination of the checkpoints: a URI or a path.")
@click.option("--checkpoint-path", help="Where training writes them.  [default: a directory in memory]")
@click.option(
    "--restore", help="auto, latest, never, a checkpoint's name, or the URI of one.  [default: auto]"
)
@click.option("--lineage", help="Which attempts belong together.  [default: the command's]")
@click.option("--keep-local", type=int, help="Durable checkpoints that stay under pressure.  [default: 1]")
@click.option("--keep-remote", type=int, help="Commits that stay at the destination.  [default: all]")
@click.option("--complete", type=click.Choice(["auto", "marked"]), help="When one is whole.  [default: auto]")
@click.option("--upload-limit", help="Bytes a second that uploads may take, such as 50Mi.")
@click.option("--outputs", help="Destination of the output directory: a URI or a path.")
@click.option("--output-path", help="Where training writes outputs.  [default: a directory in memory]")
@click.option("--outputs-every", help="Time between uploads of outputs, such as 60s.  [default: at the end]")
@click.option("--endpoint", help="URL of the object store.")
@click.option("--region", help="Its region.")
@click.option("--checkpoints-endpoint", help="The same for the checkpoints alone.")
@click.option("--checkpoints-region", help="The same for the checkpoints alone.")
@click.option("--outputs-endpoint", help="The same for the outputs alone.")
@click.option("--outputs-region", help="The same for the outputs alone.")
@click.option("--polling", is_flag=True, help="Scan in intervals even where inotify works.")
@click.option(
    "--durable-timeout",
    type=click.FloatRange(min=0),
    default=600.0,
    show_default=True,
    help="Seconds to wait at the end.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def command(command: tuple[str, ...], durable_timeout: float, polling: bool, **wishes: Any) -> int:
    """Run COMMAND with its dataset staged and its checkpoints made durable.

    COMMAND sees PODFERRY_DATASET (PODFERRY_DATASET_NAME for one with a name), PODFERRY_CHECKPOINTS and,
    where it resumes, PODFERRY_RESTORED. Its exit code is passed on; where it succeeds and its last
    checkpoint is not durable, the exit code is 74.
    """
    _check(command)
    if shutil.which(command[0]) is None:
        tell((Problem(f"{command[0]} cannot be started", "there is no such program"),))
        return EXIT_NOT_FOUND
    try:
        wishes |= by_dataset({name: wishes[name] for name in OF_DATASETS})
        agent = launch(wishes, command, LaunchOptions(polling=polling, quiet=sys.stderr.isatty()))
    except PermanentError as error:
        tell(error.problems)
        return EXIT_NEVER
    with _ending(agent):
        gate = wait_at_gate(agent.client)
        if not gate.open:
            tell(gate.problems)
            return 1 if gate.retryable else EXIT_NEVER
        click.echo(gate.summary, err=True)
        code = _train(command, {AGENT_VARIABLE: agent.url, **gate.environment})
        return conclude(code, _durable(agent, durable_timeout, code))


def _check(command: tuple[str, ...]) -> None:
    """Options end where the command begins: what looks like an option there is a slip."""
    first = command[0]
    if first.startswith("-"):
        known = [name for option in click.get_current_context().command.params for name in option.opts]
        remedy = did_you_mean(first.partition("=")[0], known, "Put -- before the command.")
        raise click.UsageError(f"no such option {first!r}. {remedy}")


class _Stopped(Exception):
    """A signal has ended the wait at the end."""


def _stop(number: int, _: object) -> None:
    raise _Stopped(signal.Signals(number).name)


def _durable(agent: LocalAgent, timeout: float, code: int) -> Durability:
    """Wait for durability; SIGINT or SIGTERM ends the wait, and the agent goes on by itself for its grace."""
    _handle(_stop)
    try:
        return agent.client.wait_durable(timeout, final=True, exit_code=code)
    except _Stopped:
        _handle(signal.SIG_IGN)  # what is left takes no time
        agent.detach()
        return agent.client.wait_durable(0, final=True, exit_code=code)
    finally:
        _handle(signal.SIG_IGN)


def _handle(handler: Callable[[int, Any], None] | signal.Handlers) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handler)


@contextmanager
def _ending(agent: LocalAgent) -> Iterator[None]:
    try:
        yield
    finally:
        _handle(_stop)
        try:
            agent.stop()
        except _Stopped:
            agent.detach()
        _handle(signal.SIG_IGN)


def wait_at_gate(client: AgentClient) -> Gate:
    """Wait until the gate is open or refused; a terminal shows the prefetch."""
    with prefetch_bars() as bars:
        for gate in client.poll_gate(bars.poll_seconds):
            if gate.open or gate.problems:
                return gate
            bars.show(client.status())
    raise AssertionError("unreachable: the client asks for ever")


def tell(problems: tuple[Problem, ...]) -> None:
    """Print what is wrong, one sentence a line."""
    for problem in problems:
        click.secho(f"podferry: {problem}", err=True, fg="red")


def _train(command: tuple[str, ...], environment: dict[str, str]) -> int:
    """Run the command; its exit code, 128 + N where signal N ended it, 127 where it cannot be started."""
    try:
        child = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            preexec_fn=_end_with_parent,  # noqa: PLW1509 - no other thread runs by now
        )
    except OSError as error:
        click.secho(f"podferry: {shlex.join(command)} cannot be started: {error}", err=True, fg="red")
        return EXIT_NOT_FOUND
    # A terminal's Ctrl-C reaches the child by itself; what comes to this process alone is passed on.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in PASSED_ON:
        signal.signal(number, lambda received, _: child.send_signal(received))
    code = child.wait()
    return 128 - code if code < 0 else code


def _end_with_parent() -> None:
    """Ask the kernel for SIGTERM when this parent is killed: nobody would keep the trainer's data for it.

    Source: prctl(2), PR_SET_PDEATHSIG; elsewhere than on Linux the trainer lives on.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def conclude(code: int, answer: Durability) -> int:
    """Say what is durable, and decide on the exit code."""
    if answer.last is not None:
        age = f"{max(time.time() - answer.last.durable_at, 0.0):.1f} s ago"
        click.echo(f"last durable checkpoint: {answer.last.name}, {age}", err=True)
    if answer.durable:
        return code
    click.secho(f"not durable: {', '.join(answer.pending) or 'unknown'}", err=True, fg="red")
    tell(answer.problems)
    return code or EXIT_NOT_DURABLE
