"""The verbs: a click group that loads a verb's module when it is asked for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import click

from podferry.contract.errors import FerryError

VERBS = {
    "agent": "Run the agent: the sidecar's command.",
    "checkpoints": "Look at the checkpoints of a destination.",
    "dataset": "Look at a dataset, and freeze it into one reference.",
    "explain": "Tell what a pod's annotations mean, and the memory they cost.",
    "run": "Run a training command with its dataset staged and its checkpoints made durable.",
    "wait": "Wait until the agent opens the gate: the gate's command.",
}
"""Every verb and what it is for; the module of the same name holds it as `command`."""

REFUSED = 1
"""Exit code where a verb ends with an error of ours."""


class LazyGroup(click.Group):
    """Knows its verbs by name; a listing needs none of their modules."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See `click.Group`."""
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """See `click.Group`."""
        if cmd_name not in VERBS:
            return None
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
    """Run a verb; its exit code. Errors of ours are told in their own words, never as a traceback."""
    try:
        code = podferry.main(list(arguments), prog_name="podferry", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except FerryError as error:
        for problem in error.problems:
            click.secho(f"podferry: {problem}", err=True, fg="red")
        return REFUSED
    except BrokenPipeError:
        sys.stderr.close()
        return REFUSED
    return code if isinstance(code, int) else 0
