"""`podferry cache create`: renders a cache's manifests, and applies them."""

from __future__ import annotations

import re
from typing import Any

import click
import yaml

from podferry.cache.manifests.cache_spec import CacheSpec
from podferry.cache.manifests.manifests import manifests
from podferry.cli.options.param_types import ParsedParam
from podferry.contract.annotation_values import parse_endpoint, parse_region, parse_size
from podferry.contract.dataset_reference import Reference, parse_reference
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.spec import Access, Medium

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
"""As a dataset's name in annotations, with room for `podferry-cache-` and the pods' numbers."""
LABEL = re.compile(r"([^=\s]+)=([^=\s]*)")


def _parse_name(text: str) -> str:
    if not NAME.fullmatch(text):
        remedy = "Write lower-case letters, digits and hyphens, 32 at most"
        raise InvalidSpec.of("not a name of a cache", repr(text), remedy)
    return text


def _parse_label(text: str) -> tuple[str, str]:
    match = LABEL.fullmatch(text)
    if match is None:
        raise InvalidSpec.of("not a label of a node", repr(text), "Write KEY=VALUE")
    return match[1], match[2]


@click.command()
@click.argument("name", type=ParsedParam("NAME", _parse_name))
@click.option("--source", type=ParsedParam("URI", parse_reference), required=True, help="The dataset.")
@click.option(
    "--size",
    type=ParsedParam("SIZE", parse_size),
    help="Space for its files, such as 14Gi.  [default: that of a frozen reference]",
)
@click.option("--nodes", type=click.IntRange(1), default=1, help="Nodes that keep it.")
@click.option(
    "--selector",
    type=ParsedParam("KEY=VALUE", _parse_label),
    multiple=True,
    help="Label of these nodes. Repeatable.",
)
@click.option("--namespace", "-n", default="podferry", help="Where the holders run.")
@click.option(
    "--readers",
    metavar="NAMESPACE",
    multiple=True,
    help="Pods of these namespaces may read too. Globs; repeatable.",
)
@click.option("--disk", is_flag=True, help="Keep it on the nodes' disks, not in memory.")
@click.option("--image", default="podferry:0.1.0", help="Image of the holders.")
@click.option("--secret", help="Secret with the source's credentials, in the holders' namespace.")
@click.option("--endpoint", type=ParsedParam("URL", parse_endpoint), help="URL of the object store.")
@click.option("--region", type=ParsedParam("NAME", parse_region), help="Region of the object store.")
def create(name: str, source: Reference, selector: tuple[tuple[str, str], ...], **options: Any) -> None:
    """Print the manifests of a cache, for `kubectl apply -f -`.

    A holder on each of the nodes fetches the dataset once, keeps it, and serves it to pods near it.
    """
    access = Access(*(options.pop(key) for key in ("secret", "endpoint", "region")))
    medium = Medium.DISK if options.pop("disk") else Medium.MEMORY
    size = options.pop("size")
    if size is None and source.bytes is None:
        raise InvalidSpec(
            Problem("the size of the dataset is unknown", str(source), "Give --size, or freeze it")
        )
    spec = CacheSpec(
        name, source=str(source), size=size, selector=dict(selector), access=access, medium=medium, **options
    )
    click.echo(yaml.safe_dump_all(manifests(spec), sort_keys=False), nl=False)
