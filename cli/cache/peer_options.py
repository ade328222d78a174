"""How a holder finds the other holders of its dataset."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from podferry.cache.peers.endpoints import holder_urls
from podferry.cache.peers.peers import Peers
from podferry.cli.options.param_types import ParsedParam
from podferry.contract.annotation_values import parse_endpoint
from podferry.webhook.cluster.kube import KubeClient

Command = TypeVar("Command", bound=Callable[..., Any])


class PeerOptions(msgspec.Struct, frozen=True):
    """Where other holders of the same dataset are.

    Attributes:
        urls: Of other holders.
        service: A Service of the pod's namespace whose endpoints are all holders, which a StatefulSet of the
            same name runs; None without.
        token: A file with the token for requests to them; None without.
    """

    urls: tuple[str, ...] = ()
    service: str | None = None
    token: Path | None = None


def peer_options(command: Command) -> Command:
    """The options of a command that runs a holder."""
    url = ParsedParam("URL", parse_endpoint)
    for option in (
        click.option(
            "--token", type=click.Path(path_type=Path), help="File with the token for other holders."
        ),
        click.option(
            "--service",
            metavar="NAME",
            help="In a cluster: other holders are endpoints of this Service, pods of the StatefulSet NAME.",
        ),
        click.option(
            "--peer", type=url, multiple=True, help="Another holder of the same dataset. Repeatable."
        ),
    ):
        command = option(command)
    return command


def take_peer_options(options: dict[str, Any]) -> PeerOptions:
    """Take the values of `peer_options` out of a command's."""
    return PeerOptions(*(options.pop(name) for name in ("peer", "service", "token")))


def make_peers(uri: str, options: PeerOptions, client: KubeClient | None) -> Peers | None:
    """The other holders of a dataset; None without any.

    Args:
        uri: Of the dataset.
        options: Where they are.
        client: For the endpoints of a Service.
    """
    if not options.urls and not options.service:
        return None

    async def find() -> Sequence[str]:
        found = await client.endpoint_slices(options.service) if client and options.service else []
        return *options.urls, *holder_urls(found)

    async def count() -> int:
        pods = await client.replicas(options.service) - 1 if client and options.service else 0
        return len(options.urls) + max(0, pods)

    # Several holders of one machine differ by their processes, those of a StatefulSet by their hosts.
    name = f"{socket.gethostname()}-{os.getpid()}"
    return Peers(uri, name, find, count, options.token)
