"""`podferry wait`, for the help alone: the entry runs the gate without loading this."""

from __future__ import annotations

import click

from podferry.sidecar import gate


@click.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> int:
    """Wait until the agent opens the gate."""
    return gate.main(list(arguments))
