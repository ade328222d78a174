"""`podferry explain`: what a pod's annotations mean, and the memory that they cost."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from podferry.cli import output as printing
from podferry.cli.explain_values import NO_SUM, Explanation, explain, with_memory
from podferry.cli.options import access_options, config_of, output_option, run
from podferry.cli.pods import Found, bare_pod, read_pods
from podferry.contract.dataset_volume import ListedSize
from podferry.contract.errors import FerryError, InvalidSpec, Problem
from podferry.contract.quantity import format_bytes
from podferry.contract.spec import PREFIX, DatasetSpec
from podferry.sidecar.dataset.selection import Selection, open_selected, part_of
from podferry.storage.listing.dataset import check_frozen
from podferry.storage.store import StoreConfig

STDIN = "-"


@click.command()
@click.option("-f", "--filename", help="YAML or JSON of pods, or of what makes them; - is standard input.")
@click.option(
    "--annotation", "annotations", multiple=True, metavar="KEY=VALUE", help="Sets one, on each pod."
)
@click.option("--declare", "declared", multiple=True, metavar="NAME=URI", help="A dataset of the policy's.")
@click.option("--namespace", "-n", help="Where the pods would be made.")
@click.option("--list", "listing", is_flag=True, help="List the datasets for their sizes; else no network.")
@output_option
@access_options
def command(filename: str | None, annotations: tuple[str, ...], output: str, **options: Any) -> int:
    """Tell what a pod's annotations mean, and the memory they cost.

    Reads pods, Jobs, CronJobs and all else that holds a pod template, from a file, or annotations alone.
    The policy of a cluster is not read: where it decides, that is said.
    """
    found = _pods(filename, _pairs(annotations, "--annotation"))
    declared = _pairs(options.pop("declared"), "--declare")
    namespace, listing = options.pop("namespace"), options.pop("listing")
    shown = [explain(one, declared, namespace) for one in found]
    if listing:
        shown = [_listed(one, options) for one in shown]
    if output == "json":
        printing.show_json([_as_json(one) for one in shown])
    else:
        for number, one in enumerate(shown):
            _print(one, first=number == 0, alone=len(shown) == 1)
    several = len(shown) > 1
    problems = [_titled(problem, one.title, several) for one in shown for problem in one.problems]
    printing.complain(problems)
    return 1 if problems else 0


def _pods(filename: str | None, annotations: Mapping[str, str]) -> list[Found]:
    named = {key if "/" in key else PREFIX + key: value for key, value in annotations.items()}
    if filename is None:
        if not named:
            raise click.UsageError("Give a file with -f, or annotations with --annotation KEY=VALUE.")
        return [bare_pod(named)]
    found = read_pods(*_read(filename))
    for one in found:
        metadata = one.pod["metadata"]
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **named}
    return found


def _read(filename: str) -> tuple[str, str]:
    """The text, and what it is called."""
    name = "standard input" if filename == STDIN else filename
    data = sys.stdin.buffer.read() if filename == STDIN else Path(filename).read_bytes()
    try:
        return data.decode(), name
    except UnicodeDecodeError as error:
        raise InvalidSpec.of(f"{name} is no text", str(error), "Write it as UTF-8") from error


def _pairs(words: tuple[str, ...], option: str) -> dict[str, str]:
    wrong = [word for word in words if "=" not in word or word.startswith("=")]
    if wrong:
        raise click.UsageError(f"{option} {wrong[0]!r}: write {option} NAME=VALUE.")
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def _listed(shown: Explanation, access: dict[str, Any]) -> Explanation:
    """The memory sum by what is really there. Credentials are this machine's, not the pod's Secret."""
    if shown.spec is None or not shown.spec.datasets:
        return shown
    found: dict[str, ListedSize] = {}
    notes = [note for note in shown.notes if not note.startswith(NO_SUM)]
    problems = list(shown.problems)
    for dataset in shown.spec.datasets:
        try:
            found[dataset.name] = run(_size(dataset, _config(dataset, access)))
        except FerryError as error:
            problems += error.problems
            continue
        there = found[dataset.name]
        part = f", part {dataset.shard}," if dataset.shard else ""
        notes.append(f"{dataset.parsed.uri}{part} holds {format_bytes(there.bytes)} in {there.files:,} files")
    listed = msgspec.structs.replace(shown, notes=tuple(notes), problems=tuple(problems))
    return listed if len(found) < len(shown.spec.datasets) else with_memory(listed, found)


def _config(dataset: DatasetSpec, access: Mapping[str, Any]) -> StoreConfig:
    own = {"endpoint": dataset.access.endpoint, "region": dataset.access.region}
    wanted = {name: access.get(name) or value for name, value in own.items()}
    return config_of(**wanted, secret_dir=access["secret_dir"])


async def _size(dataset: DatasetSpec, config: StoreConfig) -> ListedSize:
    reference = dataset.parsed
    selection = Selection(dataset.include, dataset.exclude)
    found = await open_selected(reference.uri, selection, config, dataset.unpack)
    await found.store.close()
    check_frozen(reference, found.named)
    part = part_of(found.manifest, dataset.shard)
    return ListedSize(part.bytes, part.files)


def _print(shown: Explanation, *, first: bool, alone: bool) -> None:
    if not first:
        click.echo()
    if not alone or shown.title != "annotations":
        click.echo(f"# {shown.title}")
    if shown.values:
        # The value stands last: a reference is long.
        rows = [(value.key, value.source, value.value) for value in shown.values]
        printing.show_table(("annotation", "from", "value"), rows)
    if shown.variables and shown.spec is not None:
        click.echo()
        known = [(f"$({name})", value) for name, value in shown.variables.items()]
        printing.show_table(("variable", "value"), known)
    if shown.memory:
        click.echo()
        sums = [(row.what, format_bytes(row.bytes), row.why) for row in shown.memory]
        printing.show_table(("memory", "size", "why"), sums, right=("size",))
    for note in shown.notes:
        click.echo(f"note: {note}")


def _titled(problem: Problem, title: str, several: bool) -> Problem:
    return msgspec.structs.replace(problem, what=f"{title}: {problem.what}") if several else problem


def _as_json(shown: Explanation) -> dict[str, Any]:
    return {
        "title": shown.title,
        "values": shown.values,
        "variables": shown.variables,
        "lineage": shown.lineage,
        "memory": shown.memory,
        "notes": shown.notes,
        "problems": [str(problem) for problem in shown.problems],
        "spec": shown.spec,
    }
