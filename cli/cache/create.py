"""`podferry cache create`: prints or applies the manifests of a cache, from options, a file, or both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import click
import yaml

from podferry.cache.manifests.cache_file import CacheFile, read_cache_file
from podferry.cache.manifests.cache_spec import (
    CacheSpec,
    parse_cache_name,
    parse_image,
    parse_label,
    parse_node_directory,
    parse_readers,
)
from podferry.cache.manifests.manifests import manifests
from podferry.cache.manifests.shared_volumes import STAGE, sharing_namespaces
from podferry.cache.manifests.source_problems import source_problems
from podferry.cache.report.cache_report import source_of
from podferry.cli.cache.applied_objects import apply_objects
from podferry.cli.cache.cache_args import IMAGE, NAMESPACE, NAMESPACE_NAME, source_options
from podferry.cli.cache.live_objects import NAMESPACED, VOLUME, is_shared, remove_unshared
from podferry.cli.live_cluster import LiveCluster, scope
from podferry.cli.options.cluster_options import cluster_options
from podferry.cli.options.param_types import ParsedParam
from podferry.cli.yaml_documents import read_documents, read_text
from podferry.contract.annotation_values import parse_endpoint, parse_region, parse_secret, parse_size
from podferry.contract.dataset_reference import parse_reference
from podferry.contract.errors import AccessDenied, InvalidSpec, NotFound, Problem, Refused
from podferry.contract.spec import Access, Medium
from podferry.sidecar.runtime.messages import print_problems

DEFAULTS = {"namespace": NAMESPACE, "image": IMAGE, "size": None}
ACCESS = ("secret", "endpoint", "region")


@click.command()
@click.argument("name", type=ParsedParam("NAME", parse_cache_name), required=False)
@click.option(
    "-f",
    "--filename",
    metavar="FILE",
    help="A Cache, or a SampleSet of Paddle Operator; options replace what it says. - is standard input.",
)
@click.option("--source", type=ParsedParam("URI", parse_reference), help="The dataset.")
@click.option(
    "--size",
    type=ParsedParam("SIZE", parse_size),
    help="Space for its files, such as 14Gi.  [default: that of a frozen reference]",
)
@click.option("--nodes", type=click.IntRange(1), help="Nodes that keep it.  [default: 1]")
@click.option(
    "--selector",
    type=ParsedParam("KEY=VALUE", parse_label),
    multiple=True,
    callback=lambda _, __, pairs: dict(pairs),
    help="Label of these nodes. Repeatable.",
)
@click.option(
    "--namespace", "-n", type=NAMESPACE_NAME, help=f"Where the holders run.  [default: {NAMESPACE}]"
)
@click.option(
    "--readers",
    type=ParsedParam("NAMESPACE", parse_readers),
    multiple=True,
    help="Pods of these namespaces may read too. Globs; repeatable.",
)
@click.option(
    "--disk",
    "medium",
    flag_value=Medium.DISK,
    type=click.UNPROCESSED,
    default=None,
    help="Keep it on the nodes' disks, not in memory.",
)
@click.option(
    "--shared",
    metavar="DIRECTORY",
    type=ParsedParam("DIRECTORY", parse_node_directory),
    help="Readers use the files in place: the nodes have the mounts DIRECTORY/stage and DIRECTORY/read.",
)
@source_options
@click.option(
    "--image", type=ParsedParam("IMAGE", parse_image), help=f"Image of the holders.  [default: {IMAGE}]"
)
@click.option(
    "--secret",
    type=ParsedParam("NAME", parse_secret),
    help="Secret with the source's credentials, in the holders' namespace.",
)
@click.option("--endpoint", type=ParsedParam("URL", parse_endpoint), help="URL of the object store.")
@click.option("--region", type=ParsedParam("NAME", parse_region), help="Region of the object store.")
@click.option("--apply", is_flag=True, help="Create or change the cache, instead of printing its manifests.")
@cluster_options
def create(
    filename: str | None, apply: bool, kubeconfig: str | None, context: str | None, **options: Any
) -> None:
    """Print the manifests of a cache, for `kubectl apply -f -`, or apply them.

    A holder on each of the nodes fetches the dataset once, keeps it, and serves it to pods near it.
    """
    if not apply and (kubeconfig or context):
        raise click.UsageError("--kubeconfig and --context are for --apply: without it, no cluster is asked")
    given = {name: value for name, value in options.items() if value}
    found = _read(filename) if filename else CacheFile({}, ())
    print_problems(found.notes, "yellow")
    spec = _spec({**DEFAULTS, **found.values, **given})
    globs = set(spec.readers) - set(sharing_namespaces(spec)) if spec.shared else ()
    for glob in sorted(globs):
        what = "namespaces that match a pattern get no claim: their pods copy"
        print_problems([Problem(what, glob, "Name each namespace that shares with --readers")], "yellow")
    if not apply:
        click.echo(yaml.safe_dump_all(manifests(spec), sort_keys=False), nl=False)
        return
    _apply(LiveCluster(kubeconfig, context), spec)


def _apply(cluster: LiveCluster, spec: CacheSpec) -> None:
    if spec.shared:
        _refuse_other_source(cluster, spec)
    documents = manifests(spec)
    for done in apply_objects(cluster, documents):
        click.echo(str(done))
    kept = {one["metadata"]["name"] for one in documents if one["kind"] == VOLUME}
    for thing in remove_unshared(cluster, spec.namespace, spec.name, kept):
        click.echo(f"{thing} removed")


def _refuse_other_source(cluster: LiveCluster, spec: CacheSpec) -> None:
    """Refuse another source, or another version of a frozen one, for a cache that shares.

    A container that starts again in a pod of today would find it in the place of its own.
    """
    path = f"{NAMESPACED['Service'][0]}/namespaces/{spec.namespace}/services/{spec.object_name}"
    with suppress(NotFound, AccessDenied):  # it is created, or what is missing is named when it is changed
        source = source_of(cluster.get(path, f"get Services in {scope(spec.namespace)}"))
        if source and _differs(source, spec.source) and is_shared(cluster, spec.namespace, spec.name):
            what = f"the cache {spec.name} shares {source} with pods, in place"
            remedy = "Give the other one a cache of its own, or delete this one first"
            raise Refused.of(what, f"--source {spec.source}", remedy)


def _differs(source: str, wanted: str) -> bool:
    """Whether pods that read a source in place would not want the other one."""
    before, after = parse_reference(source), parse_reference(wanted)
    return before.uri != after.uri or before.digest not in {None, after.digest}


def _read(filename: str) -> CacheFile:
    text, source = read_text(filename)
    documents = read_documents(text, source)
    if len(documents) != 1:
        what = f"{source} does not have one document"
        raise InvalidSpec.of(what, str(len(documents)), "Give each cache in a file of its own")
    return read_cache_file(documents[0], source)


def _spec(values: Mapping[str, Any]) -> CacheSpec:
    InvalidSpec.raise_any(_problems(values))
    access = Access(*(values.get(name) for name in ACCESS))
    rest = {name: value for name, value in values.items() if name not in ACCESS}
    spec = CacheSpec(**{**rest, "source": str(values["source"]), "access": access})
    InvalidSpec.raise_any(source_problems(spec))
    return spec


def _problems(values: Mapping[str, Any]) -> Iterator[Problem]:
    if "name" not in values:
        yield Problem("the cache has no name", "", "Give NAME")
    elif values.get("shared") and values["name"].endswith(f"-{STAGE}"):
        what = f"a cache that shares cannot be called …-{STAGE}: the holders' claim of another one may be"
        yield Problem(what, values["name"], "Choose another name")
    source = values.get("source")
    if source is None:
        yield Problem("the dataset is missing", "", "Give --source")
    elif values["size"] is None and source.bytes is None:
        yield Problem("the size of the dataset is unknown", str(source), "Give --size, or freeze it")
    if values.get("shared") and values.get("medium") is Medium.DISK:
        remedy = "Leave one of them out"
        yield Problem("a cache with --shared keeps its files in the nodes' memory, not on disks", "", remedy)
