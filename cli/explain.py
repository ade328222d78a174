"""`podferry explain`: shows what a pod's annotations mean and how much memory they cost."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from podferry.cli.explain_values import NO_MEMORY_SUM, Explanation, add_memory, explain
from podferry.cli.options import access_options, output_option, store_config_of
from podferry.cli.output import print_json, print_problems, print_table
from podferry.cli.pods import FoundPod, bare_pod, read_pods
from podferry.contract.dataset_volume import ListedSize
from podferry.contract.errors import FerryError, InvalidSpec
from podferry.contract.quantity import format_bytes
from podferry.contract.spec import PREFIX, DatasetSpec
from podferry.sidecar.dataset.selection import Selection, open_selected, shard_manifest
from podferry.storage.listing.dataset import check_frozen
from podferry.storage.store import StoreConfig

STDIN = "-"


@click.command()
@click.option("-f", "--filename", help="YAML or JSON of pods or controllers; - reads standard input.")
@click.option(
    "--annotation", "annotations", multiple=True, metavar="KEY=VALUE", help="Set it on each pod. Repeatable."
)
@click.option(
    "--declare", "declared", multiple=True, metavar="NAME=URI", help="Dataset of the policy. Repeatable."
)
@click.option("--namespace", "-n", help="Namespace of pods that set none.")
@click.option(
    "--list", "listing", is_flag=True, help="List the datasets for their real sizes; needs network."
)
@output_option
@access_options
def command(filename: str | None, annotations: tuple[str, ...], output: str, **options: Any) -> int:
    """Show what a pod's annotations mean, and the memory they cost.

    Reads Pods, Jobs, CronJobs and any other object with a pod template from a file, or only annotations. Does
    not read the cluster's policy; the output says where a policy decides.
    """
    pods = _pods(filename, _parse_pairs(annotations, "--annotation"))
    declared = _parse_pairs(options.pop("declared"), "--declare")
    namespace, listing = options.pop("namespace"), options.pop("listing")
    explanations = [explain(pod, declared, namespace) for pod in pods]
    if listing:
        explanations = [_with_listing(explanation, options) for explanation in explanations]
    several = len(explanations) > 1
    if output == "json":
        print_json([explanation.as_json() for explanation in explanations])
    else:
        for index, explanation in enumerate(explanations):
            if index:
                click.echo()
            _print(explanation, with_title=several or explanation.title != "annotations")
    problems = [
        msgspec.structs.replace(problem, what=f"{one.title}: {problem.what}") if several else problem
        for one in explanations
        for problem in one.problems
    ]
    print_problems(problems)
    return 1 if problems else 0


def _pods(filename: str | None, annotations: Mapping[str, str]) -> list[FoundPod]:
    added = {key if "/" in key else PREFIX + key: value for key, value in annotations.items()}
    if filename is None:
        if not added:
            raise click.UsageError("Give a file with -f, or annotations with --annotation KEY=VALUE.")
        return [bare_pod(added)]
    pods = read_pods(*_read(filename))
    for found in pods:
        metadata = found.pod["metadata"]
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **added}
    return pods


def _read(filename: str) -> tuple[str, str]:
    """Read a file; return its text, and its name for messages."""
    name = "standard input" if filename == STDIN else filename
    data = sys.stdin.buffer.read() if filename == STDIN else Path(filename).read_bytes()
    try:
        return data.decode(), name
    except UnicodeDecodeError as error:
        raise InvalidSpec.of(f"{name} is not text", str(error), "Write it as UTF-8") from error


def _parse_pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    invalid = [text for text in texts if "=" not in text or text.startswith("=")]
    if invalid:
        raise click.UsageError(f"{option} {invalid[0]!r}: write {option} NAME=VALUE.")
    return {name: value for name, _, value in (text.partition("=") for text in texts)}


def _with_listing(explanation: Explanation, access: Mapping[str, Any]) -> Explanation:
    """Compute the memory sum from listed sizes, with this machine's credentials, not the pod's Secret."""
    spec = explanation.spec
    if spec is None or not spec.datasets:
        return explanation
    sizes: dict[str, ListedSize] = {}
    notes = [note for note in explanation.notes if not note.startswith(NO_MEMORY_SUM)]
    problems = list(explanation.problems)
    for dataset in spec.datasets:
        try:
            size = asyncio.run(_listed_size(dataset, _store_config(dataset, access)))
        except FerryError as error:
            problems += error.problems
            continue
        sizes[dataset.name] = size
        part = f", part {dataset.shard}," if dataset.shard else ""
        notes.append(f"{dataset.parsed.uri}{part} holds {format_bytes(size.bytes)} in {size.files:,} files")
    listed = msgspec.structs.replace(explanation, notes=tuple(notes), problems=tuple(problems))
    return listed if len(sizes) < len(spec.datasets) else add_memory(listed, spec, sizes)


def _store_config(dataset: DatasetSpec, access: Mapping[str, Any]) -> StoreConfig:
    """The command's access options; the pod's settings fill the gaps."""
    return store_config_of(
        endpoint=access["endpoint"] or dataset.access.endpoint,
        region=access["region"] or dataset.access.region,
        secret_dir=access["secret_dir"],
    )


async def _listed_size(dataset: DatasetSpec, config: StoreConfig) -> ListedSize:
    reference = dataset.parsed
    selection = Selection(dataset.include, dataset.exclude)
    selected = await open_selected(reference.uri, selection, config, dataset.unpack)
    await selected.store.close()
    check_frozen(reference, selected.frozen)
    part = shard_manifest(selected.manifest, dataset.shard)
    return ListedSize(part.bytes, part.files)


def _print(explanation: Explanation, *, with_title: bool) -> None:
    if with_title:
        click.echo(f"# {explanation.title}")
    if explanation.values:
        # The value comes last: a reference is long.
        rows = [(value.key, value.source, value.value) for value in explanation.values]
        print_table(("annotation", "from", "value"), rows)
    if explanation.variables and explanation.spec is not None:
        click.echo()
        variables = [(f"$({name})", value) for name, value in explanation.variables.items()]
        print_table(("variable", "value"), variables)
    if explanation.memory:
        click.echo()
        memory = [(row.what, format_bytes(row.bytes), row.why) for row in explanation.memory]
        print_table(("memory", "size", "why"), memory, right=("size",))
    for note in explanation.notes:
        click.echo(f"note: {note}")
