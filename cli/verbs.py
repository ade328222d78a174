"""The verbs: a click group that loads a verb's module when it is asked for."""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Sequence

import click

from podferry.cli.main import INTERRUPTED, SMALL
from podferry.contract.errors import FerryError
from podferry.contract.suggest import did_you_mean

VERBS = {
    "agent": "Run the agent: the sidecar's command.",
    "checkpoint": "Say that a checkpoint is whole: `checkpoint done STEP`.",
    "checkpoints": "Look at the checkpoints of a destination.",
    "dataset": "Look at a dataset, freeze it into one reference, bring it, pack it.",
    "drain": "Tell the agent that its pod ends: the sidecar's preStop hook.",
    "explain": "Tell what a pod's annotations mean, and the memory they cost.",
    "inject": "Show what the webhook would make of pods, offline.",
    "run": "Run a training command with its dataset staged and its checkpoints made durable.",
    "wait": "Wait until the agent opens the gate: the gate's command.",
    "webhook": "Serve the admission webhook.",
}
"""Every verb and what it is for. The module of the same name holds it as `command`; the entry runs small ones
without this module."""

REFUSED = 1
"""Exit code where a verb ends with an error of ours."""


class LazyGroup(click.Group):
    """Knows its verbs by name; a listing needs none of their modules."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See `click.Group`."""
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """See `click.Group`."""
        if cmd_name not in VERBS or cmd_name in SMALL:
            remedy = did_you_mean(cmd_name, VERBS, f"There are: {', '.join(VERBS)}.")
            raise click.UsageError(f"there is no verb {cmd_name!r}. {remedy}", ctx)
        command: click.Command = importlib.import_module(f"podferry.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See `click.Group`."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, VERBS[name]) for name in self.list_commands(ctx)])


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="podferry")
def podferry() -> None:
    """Datasets into memory before training starts, checkpoints durable while it goes on."""


def main(arguments: Sequence[str]) -> int:
    """Run a verb; its exit code. What goes wrong is told in sentences, never as a traceback."""
    for stream in (sys.stdout, sys.stderr):
        # Names from a store may hold what this terminal cannot show.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = podferry.main(list(arguments), prog_name="podferry", standalone_mode=False)
        # Here, and not at exit, where a reader that has gone would print a traceback.
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except FerryError as error:
        for problem in error.problems:
            click.secho(f"podferry: {problem}", err=True, fg="red")
        return REFUSED
    except BrokenPipeError:
        # What is still in the buffer goes nowhere. Source: "Note on SIGPIPE", Python's `signal`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return REFUSED
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        click.secho(f"podferry: {error.strerror or error}{where}", err=True, fg="red")
        return REFUSED
    return code if isinstance(code, int) else 0
