"""Options for logs: how much, and for whom."""

from __future__ import annotations

import os
import sys

import click

from podferry.cli.options.named_options import Verb, add_options
from podferry.sidecar.runtime.log_options import (
    FORMAT_VARIABLE,
    FORMATS,
    LEVEL_VARIABLE,
    LEVELS,
    default_format,
    local_level,
)
from podferry.sidecar.runtime.messages import configure_messages

format_option = click.option(
    "--log-format",
    type=click.Choice(FORMATS),
    envvar=FORMAT_VARIABLE,
    help=f"Format of the log.  [default: json in a pod, else text; or ${FORMAT_VARIABLE}]",
)


def log_options(verb: Verb) -> Verb:
    """Add level and format to a verb that serves until it is stopped."""
    level = click.option(
        "--log-level",
        type=click.Choice(list(LEVELS)),
        default="info",
        envvar=LEVEL_VARIABLE,
        help=f"Least important level to log; or ${LEVEL_VARIABLE}.",
    )
    return add_options(verb, (level, format_option))


def verbosity_options(verb: Verb) -> Verb:
    """Add the options of a verb that starts an agent: see `apply_verbosity`."""
    options = (
        click.option("-q", "--quiet", is_flag=True, help="Print only problems."),
        click.option(
            "-v",
            "--verbose",
            count=True,
            show_default=False,
            help="Also print what the agent does; -vv: each retry.",
        ),
        format_option,
    )
    return add_options(verb, options)


def apply_verbosity(log_format: str | None, *, quiet: bool, verbose: int) -> tuple[str, str]:
    """Set up this process's messages; the agent's level and format."""
    if quiet and verbose:
        raise click.UsageError("--quiet and --verbose contradict each other: give one of them")
    chosen = log_format or default_format(os.environ, sys.stderr)
    configure_messages(chosen, quiet=quiet)
    if quiet:
        return "error", chosen
    return ("info", "debug")[min(verbose, 2) - 1] if verbose else local_level(os.environ), chosen
