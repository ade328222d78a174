"""`podferry cache read`: runs a command on a dataset that a holder of this machine shares."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import click
import structlog

from podferry.cli.options.log_options import log_options
from podferry.cli.options.param_types import DIRECTORY
from podferry.contract.errors import Refused
from podferry.contract.http_api import DATASET_VARIABLE
from podferry.sidecar.dataset.shared_set import SharedSet
from podferry.sidecar.runtime.log_setup import configure_logs
from podferry.sidecar.runtime.retry import retry

log = structlog.get_logger(__name__)
START_SECONDS = 3.0
"""For a holder to listen: it may have been started with its readers."""


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("directory", type=DIRECTORY)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@log_options
def read(directory: Path, command: tuple[str, ...], log_level: str, log_format: str | None) -> None:
    """Run COMMAND on the dataset that a holder shares in DIRECTORY, without a copy of it.

    DIRECTORY is the VIEW of `podferry cache serve --shared VIEW`. COMMAND starts when the dataset is
    complete, and finds its directory in PODFERRY_DATASET. The dataset stays as it is until COMMAND ends.
    """
    configure_logs(log_level, log_format)
    words = command[command[0] == "--" :]  # click keeps it after an argument
    shared = SharedSet(directory)
    message = asyncio.run(retry(1, shared.open, START_SECONDS))
    log.info("dataset complete", uri=message.uri, files=message.files, bytes=message.bytes)
    if shared.lock is not None:
        os.set_inheritable(shared.lock, True)
    os.environ[DATASET_VARIABLE] = _lasting_path(shared.files)
    try:
        os.execvp(words[0], words)  # noqa: S606 - without a shell
    except OSError as error:
        raise Refused.of(
            f"{words[0]} cannot be started", str(error), "Check its spelling, and PATH"
        ) from error


def _lasting_path(directory: Path) -> str:
    """A path of the directory that lasts as long as this process, by which COMMAND is replaced.

    The holder gives the name of the directory to the next version, also while COMMAND runs. What this opens
    is what the lock keeps, or a later one, which it keeps as well.
    """
    descriptor = os.open(directory, os.O_PATH)
    os.set_inheritable(descriptor, True)
    return f"/proc/{os.getpid()}/fd/{descriptor}"
