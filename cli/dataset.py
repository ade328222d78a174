"""`podferry dataset …`: look at a dataset, and freeze it into one reference."""

from __future__ import annotations

import importlib
from typing import Any

import click

from podferry.cli import output as printing
from podferry.cli.dataset_args import ListedDataset, load
from podferry.cli.options import (
    access_options,
    config_of,
    opened,
    output_option,
    place,
    run,
    selection_options,
)
from podferry.cli.size_histogram import buckets, dataset_size, typical_sizes
from podferry.contract.manifest import SUFFIX, Manifest, encode_manifest, is_manifest_name
from podferry.contract.quantity import format_bytes
from podferry.contract.spec import PREFIX
from podferry.contract.tmpfs_cost import charged_bytes
from podferry.contract.uri import Uri
from podferry.storage.store import StoreConfig


class DatasetGroup(click.Group):
    """Knows the verbs that stand elsewhere by name, and loads what is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See `click.Group`."""
        return sorted([*super().list_commands(ctx), *ELSEWHERE])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """See `click.Group`."""
        if cmd_name not in ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        command: click.Command = getattr(importlib.import_module("podferry.cli.pack"), cmd_name)
        return command


ELSEWHERE = ("pack", "verify")
"""Verbs of `podferry.cli.pack`."""


@click.group(cls=DatasetGroup)
def command() -> None:
    """Look at a dataset, freeze it into one reference, bring it, pack it.

    URI is a prefix or one object (s3://bucket/digits), a path of local files, a reference as `freeze` prints
    it, or the path of a manifest that `freeze --manifest` wrote.
    """


@command.command("ls")
@click.argument("uri")
@click.option("--limit", type=click.IntRange(min=1), help="Print only so many files.  [default: all]")
@selection_options()
@output_option
@access_options
def ls(uri: str, limit: int | None, output: str, **options: Any) -> int:
    """Print the files' sizes and names."""
    listed = load(uri, **options)
    manifest, entries = listed.manifest, listed.manifest.entries[:limit]
    if output == "json":
        files = [{"name": entry.name, "size": entry.size, "tag": entry.tag} for entry in entries]
        printing.show_json({**totals(listed), "listed": len(files), "entries": files})
    else:
        rows = [(format_bytes(entry.size), entry.name) for entry in entries]
        printing.show_table(("size", "name"), rows, right=("size",))
        cut = f"{len(entries):,} of " if len(entries) < manifest.files else ""
        printing.say(f"{cut}{count(manifest)}")
    return tell_changed(listed)


@command.command("info")
@click.argument("uri")
@selection_options()
@output_option
@access_options
def info(uri: str, output: str, **options: Any) -> int:
    """Print sizes, the digest, and the memory that it takes."""
    listed = load(uri, **options)
    if output == "json":
        printing.show_json({**totals(listed), **figures(listed.manifest)})
    else:
        printing.show_pairs(described(listed))
        rows = [
            (bucket.what, f"{bucket.files:,}", format_bytes(bucket.bytes))
            for bucket in buckets([entry.size for entry in listed.manifest.entries])
        ]
        click.echo()
        printing.show_table(("size of a file", "files", "bytes"), rows, right=("files", "bytes"))
    return tell_changed(listed)


@command.command("freeze")
@click.argument("uri")
@click.option(
    "--manifest",
    "target",
    metavar="PLACE",
    help="Write the list of files there, as JSON: a path, or a URI. Name it NAME.podferry.json to give it as "
    "a dataset.",
)
@selection_options(shard=False)
@output_option
@access_options
def freeze(uri: str, target: str | None, output: str, **options: Any) -> int:
    """Print the reference that names the dataset as it is now: one line.

    A reference that is no longer true is frozen anew; what changed is said. That of a selection is true
    with the same selection alone; shards are parts of one reference.
    """
    listed = load(uri, **options)
    if target is not None:
        access = {name: options[name] for name in ("endpoint", "region", "secret_dir")}
        run(_write(place(target), encode_manifest(listed.named), config_of(**access)))
        if not is_manifest_name(target):
            printing.say(f"note: name it NAME{SUFFIX} to give it as a dataset")
    if output == "json":
        printing.show_json(totals(listed))
    else:
        click.echo(str(listed.reference))
    printing.say(f"frozen: {count(listed.named)}")
    for problem in listed.changed:
        printing.say(f"note: {problem.what} ({problem.measured})")
    return 0


@command.command("get", context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def get(words: tuple[str, ...]) -> int:
    """Bring a dataset into a directory."""
    # The entry of `podferry` calls it without click; this is its line in the list of verbs.
    from podferry.cli.dataset_get import main  # noqa: PLC0415

    return main(list(words))


async def _write(uri: Uri, data: bytes, config: StoreConfig) -> None:
    async with opened(uri.parent, config) as store:
        await store.write(uri.name, data)


def count(manifest: Manifest) -> str:
    """Files and bytes in words."""
    files = "1 file" if manifest.files == 1 else f"{manifest.files:,} files"
    return f"{files}, {format_bytes(manifest.bytes)}"


def totals(listed: ListedDataset) -> dict[str, Any]:
    """What names and counts a dataset, for machines."""
    return {
        "uri": str(listed.reference.uri),
        "reference": str(listed.reference),
        "digest": listed.named.digest,
        "files": listed.manifest.files,
        "bytes": listed.manifest.bytes,
        "changed": [str(problem) for problem in listed.changed],
    }


def figures(manifest: Manifest) -> dict[str, Any]:
    """Sizes and memory, for machines."""
    sizes = [entry.size for entry in manifest.entries]
    return {
        "sizes": typical_sizes(sizes),
        "distribution": buckets(sizes),
        "charged": charged_bytes(sizes),
        "dataset_size": dataset_size(sizes),
    }


def described(listed: ListedDataset) -> list[tuple[str, str]]:
    """Names and values for people."""
    manifest = listed.manifest
    sizes = [entry.size for entry in manifest.entries]
    typical = ", ".join(f"{name} {format_bytes(size)}" for name, size in typical_sizes(sizes).items())
    return [
        ("dataset", str(listed.reference.uri)),
        ("files", f"{manifest.files:,}"),
        ("bytes", f"{manifest.bytes:,} ({format_bytes(manifest.bytes)})"),
        ("sizes", typical),
        ("digest", f"sha256={listed.named.digest}"),
        (
            "memory",
            f"{format_bytes(charged_bytes(sizes))} charged when staged: whole pages, and the kernel's inodes",
        ),
        (PREFIX + "dataset-size", f"{dataset_size(sizes)}; the reference below needs none"),
        ("reference", str(listed.reference)),
    ]


def tell_changed(listed: ListedDataset) -> int:
    """Say how a dataset differs from the reference that was asked for; the exit code."""
    printing.complain(listed.changed)
    return 1 if listed.changed else 0
