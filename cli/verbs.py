"""The verbs as a click group that imports a verb's module on demand."""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Sequence

import click

from podferry.cli.main import SMALL_VERBS
from podferry.contract.exit_codes import EXIT_INTERRUPTED
from podferry.contract.suggest import did_you_mean

VERBS = {
    "agent": "Run the agent: the command of the sidecar.",
    "cache": "Fetch a dataset once, and serve it to the pods near it.",
    "checkpoint": "Mark a checkpoint as complete: `checkpoint done STEP`.",
    "checkpoints": "List, inspect, verify, confirm, restore, export and remove checkpoints.",
    "dataset": "List, inspect, freeze, download, sync and pack datasets.",
    "doctor": "Check whether a dataset or destination can be reached, read and written.",
    "drain": "Start the drain of a terminating pod: the preStop hook of the sidecar.",
    "explain": "Show what a pod's annotations mean, and the memory they cost.",
    "inject": "Print pods as the webhook would inject them, offline.",
    "leftovers": "List, upload and remove what killed runs have left on this machine.",
    "policy": "Check an injection policy: what it does to which pods.",
    "run": "Run a training command with its dataset staged and its checkpoints uploaded.",
    "wait": "Wait until the agent opens the gate: the command of the gate.",
    "webhook": "Serve the admission webhook.",
}
"""All verbs with their help."""
MODULES = {
    "agent": "agent.agent",
    "cache": "cache.cache",
    "checkpoints": "checkpoints.checkpoints",
    "dataset": "dataset.dataset",
    "doctor": "doctor",
    "explain": "pods.explain",
    "inject": "pods.inject",
    "leftovers": "run.leftovers",
    "policy": "pods.policy",
    "run": "run.run",
    "webhook": "webhook",
}
"""The module below `podferry.cli` that defines a verb's `command`, except for the small verbs."""


SUBVERBS = {"checkpoint": ("done",)}
"""Of the small verbs."""


class LazyGroup(click.Group):
    """Lists the verbs without importing their modules."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See `click.Group`; an option of a verb may be before the verb by mistake."""
        words = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            verb = next((word for word in words if word in VERBS), None)
            found = self.get_command(ctx, verb) if verb is not None else None
            if found is None or not any(error.option_name in one.opts for one in found.params):
                raise
            what = f"{error.option_name} is an option of {verb}"
            raise click.UsageError(f"{what}: podferry {verb} {error.option_name} …", ctx) from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See `click.Group`."""
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """See `click.Group`."""
        if cmd_name not in VERBS:
            return None
        if cmd_name in SMALL_VERBS:  # `main` runs them; click only completes their names
            return click.Group(cmd_name, [*map(click.Command, SUBVERBS.get(cmd_name, ()))])
        command: click.Command = importlib.import_module(f"podferry.cli.{MODULES[cmd_name]}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """See `click.Group`."""
        verb = args[0]
        if verb not in VERBS and not ctx.resilient_parsing and not verb.startswith("-"):
            remedy = did_you_mean(verb, VERBS, f"There are: {', '.join(VERBS)}.")
            raise click.UsageError(f"there is no verb {verb!r}. {remedy}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See `click.Group`."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, VERBS[name]) for name in self.list_commands(ctx)])


CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True}


@click.group(cls=LazyGroup, context_settings=CONTEXT, subcommand_metavar="VERB [ARGUMENTS]...")
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
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    return code if isinstance(code, int) else 0
