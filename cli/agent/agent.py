"""`podferry agent --worker`: parses the agent's configuration once, and runs the agent."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import uvloop

from podferry.cli.agent.supervise import DEFAULT_PORT
from podferry.cli.options.log_options import log_options
from podferry.cli.options.named_options import split_dataset_name
from podferry.cli.options.param_types import SECONDS, ParsedParam
from podferry.contract.annotation_values import parse_endpoint
from podferry.contract.cache_api import Holder
from podferry.contract.code_version import CODE_VARIABLE, decode_code
from podferry.contract.errors import FerryError
from podferry.contract.http_api import SPEC_VARIABLE
from podferry.contract.location_guards import GUARDS_VARIABLE, decode_guards
from podferry.contract.pod_binding import MADE_FOR_VARIABLE, POD_VARIABLE, STAMP_VARIABLE, PodBinding
from podferry.contract.spec_json import decode_spec
from podferry.sidecar.agent.worker import run_agent
from podferry.sidecar.config.agent_config import AgentConfig, decode_program_run
from podferry.sidecar.config.directories import Directories
from podferry.sidecar.config.run_directory import RunDirectory
from podferry.sidecar.config.tuning import Tuning
from podferry.sidecar.runtime.log_setup import configure_logs

DIRECTORY = click.Path(path_type=Path, file_okay=False)
FILE = click.Path(path_type=Path, dir_okay=False)


class NamedDirectory(click.ParamType[tuple[str, Path]]):
    """`DIR` for the unnamed dataset, or `NAME=DIR`; a name never contains a slash."""

    name = "[NAME=]DIR"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See `click.ParamType`."""
        name, directory = split_dataset_name(value)
        return name, DIRECTORY.convert(directory, param, ctx)


class NamedEndpoint(click.ParamType[tuple[str, str]]):
    """`URL` for the unnamed dataset, or `NAME=URL`."""

    name = "[NAME=]URL"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See `click.ParamType`."""
        name, url = split_dataset_name(value)
        return name, ParsedParam("URL", parse_endpoint).convert(url, param, ctx)


NAMED_DIRECTORY, NAMED_ENDPOINT = NamedDirectory(), NamedEndpoint()


@click.command()
@click.option("--worker", is_flag=True, hidden=True, help="Run the worker without its supervisor.")
@click.option("--spec", envvar=SPEC_VARIABLE, required=True, help="The ferry spec as JSON.")
@click.option("--made-for", envvar=MADE_FOR_VARIABLE, hidden=True, help="The pod that was injected.")
@click.option("--pod", envvar=POD_VARIABLE, hidden=True, help="The name of this pod.")
@click.option("--stamp", envvar=STAMP_VARIABLE, hidden=True, help="The signature in its annotations.")
@click.option("--code", envvar=CODE_VARIABLE, default="", hidden=True)
@click.option("--guards", envvar=GUARDS_VARIABLE, default="", hidden=True)
@click.option("--control-dir", type=DIRECTORY, required=True, help="The agent's private directory.")
@click.option("--dataset-dir", type=NAMED_DIRECTORY, multiple=True, help="Staging directory. Repeatable.")
@click.option(
    "--claim-dir",
    type=NAMED_DIRECTORY,
    multiple=True,
    help="Directory of the staging lock and manifest; must outlive the agent. Repeatable.",
)
@click.option("--checkpoint-dir", type=DIRECTORY, help="Directory to which the trainer writes checkpoints.")
@click.option("--pins-dir", type=DIRECTORY, help="For hard links: same file system, hidden from the trainer.")
@click.option("--output-dir", type=DIRECTORY, help="Directory to which the trainer writes outputs.")
@click.option(
    "--dataset-secret-dir",
    type=NAMED_DIRECTORY,
    multiple=True,
    help="Mounted Secret of a dataset. Repeatable.  [default: the environment]",
)
@click.option(
    "--dataset-cache",
    type=NAMED_ENDPOINT,
    multiple=True,
    help="Cache to ask for a dataset first. Repeatable.  [default: the dataset's source]",
)
@click.option(
    "--shared-dir",
    type=NAMED_DIRECTORY,
    multiple=True,
    help="Mount of a stage that a holder shares. Repeatable.",
)
@click.option("--cache-token", type=FILE, help="File with the token for caches.")
@click.option("--checkpoint-secret-dir", type=DIRECTORY, help="Mounted Secret of the checkpoints.")
@click.option("--output-secret-dir", type=DIRECTORY, help="Mounted Secret of the outputs.")
@click.option("--temporary-dir", type=DIRECTORY, multiple=True, help="Removed at the end. Repeatable.")
@click.option("--run-id", help="KFP's run id.")
@click.option("--program", help="What runs, outside Kubernetes, as JSON.")
@click.option("--grace", type=SECONDS, default=30.0, help="Maximum seconds for a drain.")
@click.option("--patience", type=SECONDS, help="Seconds that a store may not answer before the start fails.")
@click.option("--polling", is_flag=True, help="Scan at intervals, without inotify.")
@click.option("--in-pod", is_flag=True, help="Runs in a pod: JSON logs; messages name annotations.")
@click.option("--host", help="Address on loopback.  [default: 127.0.0.1]")
@click.option("--port", type=int, help=f"Port on loopback.  [default: {DEFAULT_PORT}]")
@click.option("--ending", is_flag=True, hidden=True, help="Drain at once: the pod is terminating.")
@click.option("--listen-fd", type=int, help="File descriptor of a listening socket, instead of --port.")
@click.option("--run-dir", type=DIRECTORY, help="The directory of a local run, with the locks of who lives.")
@log_options
def command(log_level: str, log_format: str | None, **options: Any) -> int:
    """Run the agent: the command of the sidecar."""
    configure_logs(log_level, log_format or ("json" if options["in_pod"] else None))
    try:
        config = parse_config(options)
    except FerryError as error:
        raise click.UsageError(str(error)) from error
    if config.spec.fetches:
        from podferry.sidecar.fetch.workers.processes import prefork  # noqa: PLC0415 - a shared one does not

        prefork()
    listener = socket.socket(fileno=options["listen_fd"])
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run_agent(config, listener, ending=options["ending"]))
    return 0


def parse_config(options: Mapping[str, Any]) -> AgentConfig:
    """Turn options and environment into one value. Raises `InvalidSpec`, `Corrupt` or `FormatTooNew`."""
    spec = decode_spec(options["spec"].encode(), SPEC_VARIABLE)
    directories = Directories(
        control=options["control_dir"],
        datasets=dict(options["dataset_dir"]),
        ownership=dict(options["claim_dir"]),
        checkpoints=options["checkpoint_dir"],
        holds=options["pins_dir"],
        outputs=options["output_dir"],
        temporary=options["temporary_dir"],
        run=RunDirectory(options["run_dir"]) if options["run_dir"] else None,
    )
    tuning = Tuning(grace_seconds=options["grace"], polling=options["polling"])
    program = decode_program_run(options["program"]) if options["program"] else None
    return AgentConfig(
        spec=spec,
        directories=directories,
        dataset_secrets=dict(options["dataset_secret_dir"]),
        holders={name: Holder(url, options["cache_token"]) for name, url in options["dataset_cache"]},
        shared=dict(options["shared_dir"]),
        checkpoint_secret=options["checkpoint_secret_dir"],
        output_secret=options["output_secret_dir"],
        tuning=tuning if options["patience"] is None else tuning.with_patience(options["patience"]),
        run_id=options["run_id"],
        in_pod=options["in_pod"],
        binding=_binding(options),
        guards=decode_guards(options["guards"]) if options["in_pod"] else None,
        program=program,
        code=program.code if program is not None else decode_code(options["code"]),
    )


def _binding(options: Mapping[str, Any]) -> PodBinding | None:
    if options["made_for"] is None:
        return None
    return PodBinding(options["made_for"], options["pod"] or "", options["stamp"] or "")
