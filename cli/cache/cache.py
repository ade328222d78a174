"""`podferry cache …`: fetch a dataset once, and serve it to the pods near it."""

from __future__ import annotations

import importlib

import click

VERBS = {
    "clear": "clear",
    "create": "create",
    "delete": "delete",
    "job": "job",
    "ls": "status",  # as for datasets and checkpoints
    "read": "read",
    "rmr": "rmr",
    "serve": "serve",
    "status": "status",
    "sync": "sync",
    "warmup": "warmup",
}
"""The module next to this one that defines each verb, with the function of the same name."""


class CacheVerbs(click.Group):
    """Imports a verb on demand: of a holder and its readers, each start counts."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See `click.Group`."""
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """See `click.Group`."""
        name = VERBS.get(cmd_name)
        if name is None:
            return None
        command: click.Command = getattr(importlib.import_module(f"podferry.cli.cache.{name}"), name)
        return command


@click.group(cls=CacheVerbs)
def command() -> None:
    """Fetch a dataset once, and serve it to the pods near it."""
