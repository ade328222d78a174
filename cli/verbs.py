"""The verbs as a click group that imports a verb's module on demand."""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Sequence

import click

from podferry.cli.main import FAILED, INTERRUPTED, SMALL_VERBS
from podferry.cli.output import print_problems
from podferry.contract.errors import FerryError
from podferry.contract.suggest import did_you_mean

VERBS = {
    "agent": "Run the agent: the command of the sidecar.",
    "checkpoint": "Mark a checkpoint as complete: `checkpoint done STEP`.",
    "checkpoints": "List, inspect, verify, confirm, restore, export and remove checkpoints.",
    "dataset": "List, inspect, freeze, download and pack datasets.",
    "drain": "Start the drain of a terminating pod: the preStop hook of the sidecar.",
    "explain": "Show what a pod's annotations mean, and the memory they cost.",
    "inject": "Print pods as the webhook would inject them, offline.",
    "run": "Run a training command with its dataset staged and its checkpoints uploaded.",
    "wait": "Wait until the agent opens the gate: the command of the gate.",
    "webhook": "Serve the admission webhook.",
}
"""All verbs with their help. The module of the same name defines `command`, except for the small verbs."""


class LazyGroup(click.Group):
    """Lists the verbs without importing their modules."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See `click.Group`."""
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """See `click.Group`."""
        if cmd_name not in VERBS or cmd_name in SMALL_VERBS:
            remedy = did_you_mean(cmd_name, VERBS, f"There are: {', '.join(VERBS)}.")
            raise click.UsageError(f"there is no verb {cmd_name!r}. {remedy}", ctx)
        command: click.Command = importlib.import_module(f"podferry.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See `click.Group`."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, VERBS[name]) for name in self.list_commands(ctx)])


CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True}


@click.group(cls=LazyGroup, context_settings=CONTEXT)
@click.version_option(package_name="podferry")
def podferry() -> None:
    """Stage datasets before training starts, and upload checkpoints while it runs."""


def main(arguments: Sequence[str]) -> int:
    """Run a verb; return its exit code. Errors are printed as sentences, never as a traceback."""
    for stream in (sys.stdout, sys.stderr):
        # Names from a store may contain characters that the terminal cannot encode.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = podferry.main(list(arguments), prog_name="podferry", standalone_mode=False)
        # Not at exit: a closed pipe would print a traceback there.
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except FerryError as error:
        print_problems(error.problems)
        return FAILED
    except BrokenPipeError:
        # Discard what is still buffered. Source: "Note on SIGPIPE" in the documentation of Python's `signal`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        file = f": {error.filename}" if error.filename else ""
        click.secho(f"podferry: {error.strerror or error}{file}", err=True, fg="red")
        return FAILED
    return code if isinstance(code, int) else 0
