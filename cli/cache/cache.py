"""`podferry cache …`: fetch a dataset once, and serve it to the pods near it."""

from __future__ import annotations

import click

from podferry.cli.cache.clear import clear
from podferry.cli.cache.create import create
from podferry.cli.cache.delete import delete
from podferry.cli.cache.job import job
from podferry.cli.cache.read import read
from podferry.cli.cache.rmr import rmr
from podferry.cli.cache.serve import serve
from podferry.cli.cache.status import status
from podferry.cli.cache.sync import sync
from podferry.cli.cache.warmup import warmup


@click.group()
def command() -> None:
    """Fetch a dataset once, and serve it to the pods near it."""


command.add_command(clear)
command.add_command(create)
command.add_command(delete)
command.add_command(job)
command.add_command(read)
command.add_command(rmr)
command.add_command(serve)
command.add_command(status)
command.add_command(status, "ls")  # as for datasets and checkpoints
command.add_command(sync)
command.add_command(warmup)
