"""`podferry cache serve`: runs a holder."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, nullcontext
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import click
import msgspec

from podferry.cache.holder.holder import run_holder
from podferry.cache.holder.holder_stage import HolderStage
from podferry.cache.holder.readers import Readers, token_subject
from podferry.cache.shared_stage.lock_server import serving_locks
from podferry.cache.shared_stage.place import SharedPlace
from podferry.cache.shared_stage.shared_stage import SharedStage
from podferry.cli.cache.cache_args import source_options
from podferry.cli.cache.peer_options import PeerOptions, make_peers, peer_options, take_peer_options
from podferry.cli.options.argument_names import dataset_of_arguments
from podferry.cli.options.log_options import log_options
from podferry.cli.options.param_types import DIRECTORY, ParsedParam
from podferry.cli.options.store_options import access_options
from podferry.contract.annotation_values import parse_size
from podferry.contract.cache_api import PORT
from podferry.contract.errors import Changed, InvalidSpec, PermanentError, Problem, Refused
from podferry.contract.exit_codes import EXIT_NEVER
from podferry.contract.spec import Unpack
from podferry.sidecar.config.local_path import ensure_dir, sibling_dir
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.dataset.dataset_job import DatasetJob
from podferry.sidecar.dataset.dataset_placement import DatasetPlacement
from podferry.sidecar.dataset.fit_check import HOLDER
from podferry.sidecar.fetch.rate_limit import RateLimit
from podferry.sidecar.fetch.workers.processes import prefork
from podferry.sidecar.runtime.log_setup import configure_logs
from podferry.sidecar.runtime.messages import print_problems
from podferry.webhook.cluster.kube import KubeClient, cluster_session, in_cluster_url

LOOPBACK = "127.0.0.1"
MakeStage = Callable[[PeerOptions, KubeClient | None], HolderStage]


@click.command()
@click.argument("uri")
@click.argument("directory")
@click.option("--host", default=LOOPBACK, help="Address to listen on. Any but loopback needs --readers.")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, help="Port to listen on.")
@click.option(
    "--readers",
    metavar="NAMESPACE",
    multiple=True,
    help="In a cluster: pods of these namespaces may read, with a token. Globs; repeatable.  "
    "[default: everybody who can connect]",
)
@click.option(
    "--shared",
    metavar="VIEW",
    type=DIRECTORY,
    help="Readers of this machine use the files in place: VIEW is a read-only mount of DIRECTORY.",
)
@source_options
@click.option(
    "--size",
    type=ParsedParam("SIZE", parse_size),
    help="Refuse a dataset that needs more space, such as 14Gi.  [default: what is free]",
)
@peer_options
@access_options
@log_options
def serve(log_level: str, log_format: str | None, **options: Any) -> None:
    """Fetch the dataset URI into DIRECTORY, keep it there, and serve it read-only over HTTP.

    Readers name it: `podferry dataset get --cache http://127.0.0.1:PORT URI DIRECTORY`. Files that an
    earlier start has left in DIRECTORY are compared with its record, and fetched again if they differ.

    Several holders of one dataset, each with the others as --peer, fetch each file from the source once.
    Ends with exit code 78 if another try cannot help.
    """
    configure_logs(log_level, log_format)
    try:
        _start(options)
    except Changed:
        raise
    except PermanentError as error:
        print_problems(error.problems)
        raise SystemExit(EXIT_NEVER) from error


def _start(options: dict[str, Any]) -> None:
    host, port, namespaces = (options.pop(name) for name in ("host", "port", "readers"))
    refresh = options.pop("refresh")
    InvalidSpec.raise_any(_address_problems(host, namespaces))
    prefork()
    peers = take_peer_options(options)
    directory, view = (options.pop(name) for name in ("directory", "shared"))
    place = None if view is None else _shared_place(Path(directory), view)
    max_rate = options.pop("max_rate")
    limit = RateLimit(max_rate) if max_rate else None
    make_stage = _stage_maker(options.pop("uri"), directory, options, place, limit)
    asyncio.run(_serve(make_stage, (host, port), namespaces, peers, refresh))


def _address_problems(host: str, namespaces: tuple[str, ...]) -> list[Problem]:
    try:
        is_loopback = ip_address(host).is_loopback
    except ValueError:
        return [Problem("--host: not an address", repr(host), "Write 127.0.0.1, 0.0.0.0 or ::")]
    if is_loopback or namespaces:
        return []
    remedy = "Name the namespaces that may read with --readers, or listen on 127.0.0.1"
    return [Problem("everybody who reaches this address could read the dataset", host, remedy)]


def _shared_place(directory: Path, view: Path) -> SharedPlace:
    place = SharedPlace(directory.resolve(), view.resolve())
    Refused.raise_any(place.problems())
    place.claim()
    return place


def _stage_maker(
    uri: str, directory: str, options: dict[str, Any], place: SharedPlace | None, limit: RateLimit | None
) -> MakeStage:
    secret_dir, size = options.pop("secret_dir"), options.pop("size")
    settings = {"dataset": uri, "dataset_path": directory if place is None else str(place.files), **options}
    spec = dataset_of_arguments(settings)
    spec = msgspec.structs.replace(spec, unpack=Unpack.NEVER)  # readers unpack
    root = Path(spec.path)
    InvalidSpec.raise_any(filter(None, [ensure_dir(root)]))
    if root.is_mount():
        what = "another version of the dataset could not take the place of a mount"
        raise Refused.of(what, str(root), f"Keep it in {root}/held")
    private = sibling_dir(root) if place is None else place.private

    def job(where: Path, records: Path) -> DatasetJob:
        there = msgspec.structs.replace(spec, path=str(where))
        placement = DatasetPlacement(where, records, secret_dir, size_limit=size, names=HOLDER)
        return DatasetJob(there, placement, PrefetchSettings(), limit=limit)

    def stage(peers: PeerOptions, client: KubeClient | None) -> HolderStage:
        source = str(spec.parsed.uri)
        others = make_peers(source, peers, client)
        if place is not None:
            return SharedStage(source, job, place, others)
        return HolderStage(source, job, root, private, others)

    return stage


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, dualstack_ipv6=host == "::")
    except OSError as error:
        remedy = "Choose another one with --host and --port"
        what = f"{host}, port {port}, cannot be listened on"
        raise InvalidSpec(Problem(what, str(error), remedy)) from error


@asynccontextmanager
async def _cluster(*, needed: bool) -> AsyncIterator[KubeClient | None]:
    if not needed:
        yield None
        return
    url = in_cluster_url(
        remedy="Run it in a pod, or leave --readers and --service out and listen on 127.0.0.1"
    )
    async with cluster_session() as session:
        yield KubeClient(session, url)


async def _serve(
    make_stage: MakeStage,
    address: tuple[str, int],
    namespaces: tuple[str, ...],
    peers: PeerOptions,
    refresh_seconds: int | None,
) -> None:
    async with _cluster(needed=bool(namespaces or peers.service)) as client:
        readers = _readers(client, namespaces, peers.token) if client and namespaces else None
        stage = make_stage(peers, client)
        async with serving_locks(stage) if isinstance(stage, SharedStage) else nullcontext():
            listener, node = _listen(*address), socket.gethostname()
            await _run(run_holder([stage], listener, node, readers, refresh_seconds))


def _readers(client: KubeClient, namespaces: tuple[str, ...], token: Path | None) -> Readers:
    """Who may read; all holders of the cache have the service account of this one's token."""
    holders = token_subject(token.read_text()) if token is not None else None
    return Readers(client.review_token, namespaces, holders=holders)


async def _run(holder: Coroutine[Any, Any, None]) -> None:
    """Run it until it fails, or a signal stops this process."""
    running, stopped = asyncio.create_task(holder), asyncio.Event()

    def stop() -> None:
        stopped.set()
        running.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    await asyncio.gather(running, return_exceptions=True)
    if not (running.cancelled() and stopped.is_set()):
        running.result()
