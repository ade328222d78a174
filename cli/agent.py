"""`podferry agent`: parses all that an agent is told, once, and starts the worker."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import uvloop

from podferry.cli.named_options import split_named
from podferry.contract.api import SPEC_VARIABLE
from podferry.contract.errors import FerryError
from podferry.contract.spec_json import decode_spec
from podferry.sidecar.agent.worker import run_agent
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.config.directories import Directories
from podferry.sidecar.config.tuning import Tuning
from podferry.sidecar.fetch.worker_prefork import prefork
from podferry.sidecar.runtime.log_setup import LEVELS, configure_logs

DIRECTORY = click.Path(path_type=Path, file_okay=False)


class NamedDirectory(click.ParamType[tuple[str, Path]]):
    """`DIR` of the dataset without a name, or `NAME=DIR`; a name never holds a slash."""

    name = "[NAME=]DIR"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Path]:
        """See `click.ParamType`."""
        name, directory = split_named(value)
        return name, DIRECTORY.convert(directory, param, ctx)


NAMED_DIRECTORY = NamedDirectory()


@click.command()
@click.option("--worker", is_flag=True, hidden=True, help="Run the worker itself, without its supervisor.")
@click.option("--spec", envvar=SPEC_VARIABLE, required=True, help="The ferry spec as JSON.")
@click.option("--control-dir", type=DIRECTORY, required=True, help="The agent's own directory.")
@click.option("--dataset-dir", type=NAMED_DIRECTORY, multiple=True, help="The stage of a dataset.")
@click.option(
    "--claim-dir", type=NAMED_DIRECTORY, multiple=True, help="Says whose a stage is; lives as long as it."
)
@click.option("--checkpoint-dir", type=DIRECTORY, help="What the trainer writes.")
@click.option("--pins-dir", type=DIRECTORY, help="On the same file system, out of the trainer's reach.")
@click.option("--output-dir", type=DIRECTORY, help="What the trainer writes and is uploaded as it is.")
@click.option(
    "--dataset-secret-dir",
    type=NAMED_DIRECTORY,
    multiple=True,
    help="A mounted Secret; else the environment counts.",
)
@click.option("--checkpoint-secret-dir", type=DIRECTORY, help="The same for checkpoints.")
@click.option("--output-secret-dir", type=DIRECTORY, help="The same for outputs.")
@click.option("--temporary-dir", "temporary", type=DIRECTORY, multiple=True, help="Removed at the end.")
@click.option("--run-id", help="KFP's run id.")
@click.option("--grace", type=float, default=30.0, show_default=True, help="Seconds that a drain may take.")
@click.option("--polling", is_flag=True, help="Scan in intervals even where inotify works.")
@click.option("--in-pod", is_flag=True, help="Remedies name annotations.")
@click.option("--port", type=int, help="Port on loopback.  [default: 8471]")
@click.option("--ending", is_flag=True, hidden=True, help="Drain at once: the pod is ending.")
@click.option("--listen-fd", type=int, help="A listening socket to use instead of a port.")
@click.option("--until-stdin-closes", is_flag=True, help="End when standard input does.")
@click.option("--log-level", type=click.Choice(sorted(LEVELS)), default="info", show_default=True)
def command(**options: Any) -> int:
    """Run the agent: the sidecar's command."""
    configure_logs(options["log_level"])
    try:
        config = parse(options)
    except FerryError as error:
        raise click.UsageError(str(error)) from error
    if config.spec.datasets or config.spec.checkpoints is not None:  # which may be restored
        prefork()
    listener = socket.socket(fileno=options["listen_fd"])
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run_agent(config, listener, ending=options["ending"]))
    return 0


def parse(options: Mapping[str, Any]) -> AgentConfig:
    """Options and environment as one frozen value.

    Raises:
        InvalidWish, Corrupt, FormatTooNew: Everything that is wrong.
    """
    spec = decode_spec(options["spec"].encode(), SPEC_VARIABLE)
    directories = Directories(
        control=options["control_dir"],
        datasets=dict(options["dataset_dir"]),
        ownership=dict(options["claim_dir"]),
        checkpoints=options["checkpoint_dir"],
        holds=options["pins_dir"],
        outputs=options["output_dir"],
        temporary=options["temporary"],
    )
    return AgentConfig(
        spec=spec,
        directories=directories,
        dataset_secrets=dict(options["dataset_secret_dir"]),
        checkpoint_secret=options["checkpoint_secret_dir"],
        output_secret=options["output_secret_dir"],
        tuning=Tuning(grace_seconds=options["grace"], polling=options["polling"]),
        run_id=options["run_id"],
        in_pod=options["in_pod"],
    )
