"""`podferry dataset …`: list, inspect, freeze, download, sync and pack datasets."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any

import click

from podferry.cli.dataset.dataset_args import ListedDataset, load_dataset
from podferry.cli.dataset.size_histogram import recommended_size, size_histogram, size_statistics
from podferry.cli.options.store_options import (
    access_options,
    parse_location,
    selection_options,
    store_at,
    store_config_of,
)
from podferry.cli.output import output_option, print_json, print_pairs, print_table
from podferry.contract.manifest import SUFFIX, Manifest, encode_manifest, is_manifest_name
from podferry.contract.quantity import count_of, format_bytes
from podferry.contract.spec import PREFIX
from podferry.contract.tmpfs_cost import charged_bytes
from podferry.contract.uri import Uri
from podferry.sidecar.runtime.messages import print_message, print_problems
from podferry.storage.store import StoreConfig

OTHER_VERBS = {"pack": "pack", "verify": "pack", "sync": "sync"}
"""Verbs of other modules below `podferry.cli.dataset`, which are imported only for them."""


class DatasetGroup(click.Group):
    """The verbs of this module, and `OTHER_VERBS`, imported on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See `click.Group`."""
        return sorted([*super().list_commands(ctx), *OTHER_VERBS])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """See `click.Group`."""
        if cmd_name not in OTHER_VERBS:
            return super().get_command(ctx, cmd_name)
        module = importlib.import_module(f"podferry.cli.dataset.{OTHER_VERBS[cmd_name]}")
        command: click.Command = getattr(module, cmd_name)
        return command


@click.group(cls=DatasetGroup)
def command() -> None:
    """List, inspect, freeze, download, sync and pack datasets.

    URI is a prefix or an object (s3://bucket/digits), a local path, a reference printed by `freeze`, or the
    path of a manifest written by `freeze --manifest`.
    """
    # Imported here: help needs no logs.
    from podferry.sidecar.runtime.log_setup import configure_unless_done  # noqa: PLC0415

    configure_unless_done()


@command.command("ls")
@click.argument("uri")
@click.option("--limit", type=click.IntRange(min=1), help="Maximum number of files to list.  [default: all]")
@selection_options()
@output_option
@access_options
def ls(uri: str, limit: int | None, output: str, **options: Any) -> int:
    """List the files with their sizes."""
    listed = load_dataset(uri, **options)
    manifest, entries = listed.manifest, listed.manifest.entries[:limit]
    if output == "json":
        files = [{"name": entry.name, "size": entry.size, "tag": entry.tag} for entry in entries]
        print_json({**_identity(listed), "listed": len(files), "entries": files})
    else:
        print_table(("size", "name"), [(format_bytes(one.size), one.name) for one in entries], ("size",))
        cut = f"{len(entries):,} of " if len(entries) < manifest.files else ""
        print_message(f"{cut}{_totals(manifest)}")
    return _report_changes(listed)


@command.command("info")
@click.argument("uri")
@selection_options()
@output_option
@access_options
def info(uri: str, output: str, **options: Any) -> int:
    """Show sizes, the digest, and the memory needed."""
    listed = load_dataset(uri, **options)
    if output == "json":
        print_json({**_identity(listed), **_sizes(listed.manifest)})
    else:
        print_pairs(_describe(listed))
        click.echo()
        rows = [
            (bucket.what, f"{bucket.files:,}", format_bytes(bucket.bytes))
            for bucket in size_histogram([entry.size for entry in listed.manifest.entries])
        ]
        print_table(("size of a file", "files", "bytes"), rows, right=("files", "bytes"))
    return _report_changes(listed)


@command.command("freeze")
@click.argument("uri")
@click.option(
    "--manifest",
    "target",
    metavar="FILE",
    help="Also write the list of files as JSON to this path or URI. To use it as a dataset, name it "
    "NAME.podferry.json.",
)
@selection_options(shard=False)
@output_option
@access_options
def freeze(uri: str, target: str | None, output: str, **options: Any) -> int:
    """Print a reference to the current content of a dataset.

    The reference is one line. If URI is a reference to content that has changed, prints a new reference and
    what changed. Use a reference with the --include and --exclude that it was made with; shards share one
    reference.
    """
    listed = load_dataset(uri, **options)
    if target is not None:
        access = {name: options[name] for name in ("endpoint", "region", "secret_dir")}
        data = encode_manifest(listed.frozen)
        asyncio.run(_write(parse_location(target), data, store_config_of(**access)))
        if not is_manifest_name(target):
            print_message(f"note: to use it as a dataset, name it NAME{SUFFIX}")
    if output == "json":
        print_json(_identity(listed))
    else:
        click.echo(str(listed.reference))
    print_message(f"frozen: {_totals(listed.frozen)}")
    for problem in listed.changed:
        print_message(f"note: {problem.what} ({problem.measured})")
    return 0


@command.command("get", context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def get(arguments: tuple[str, ...]) -> int:
    """Download a dataset into a directory."""
    # `podferry` runs this verb without click; this function only adds it to the help.
    from podferry.cli.dataset.get import main  # noqa: PLC0415

    return main(list(arguments))


async def _write(uri: Uri, data: bytes, config: StoreConfig) -> None:
    async with store_at(uri.parent, config) as store:
        await store.write(uri.name, data)


def _totals(manifest: Manifest) -> str:
    return f"{count_of(manifest.files, 'file')}, {format_bytes(manifest.bytes)}"


def _identity(listed: ListedDataset) -> dict[str, Any]:
    """Reference and totals as JSON fields."""
    return {
        "uri": str(listed.reference.uri),
        "reference": str(listed.reference),
        "digest": listed.frozen.digest,
        "files": listed.manifest.files,
        "bytes": listed.manifest.bytes,
        "changed": [str(problem) for problem in listed.changed],
    }


def _sizes(manifest: Manifest) -> dict[str, Any]:
    """Sizes and memory as JSON fields."""
    sizes = [entry.size for entry in manifest.entries]
    return {
        "sizes": size_statistics(sizes),
        "distribution": size_histogram(sizes),
        "charged": charged_bytes(sizes),
        "dataset_size": recommended_size(sizes),
    }


def _describe(listed: ListedDataset) -> list[tuple[str, str]]:
    """Names and values for people."""
    manifest = listed.manifest
    sizes = [entry.size for entry in manifest.entries]
    statistics = ", ".join(f"{name} {format_bytes(size)}" for name, size in size_statistics(sizes).items())
    memory = f"{format_bytes(charged_bytes(sizes))} charged when staged: whole pages, and the kernel's inodes"
    return [
        ("dataset", str(listed.reference.uri)),
        ("files", f"{manifest.files:,}"),
        ("bytes", f"{manifest.bytes:,} ({format_bytes(manifest.bytes)})"),
        ("sizes", statistics),
        ("digest", f"sha256={listed.frozen.digest}"),
        ("memory", memory),
        (PREFIX + "dataset-size", f"{recommended_size(sizes)}; the reference below needs none"),
        ("reference", str(listed.reference)),
    ]


def _report_changes(listed: ListedDataset) -> int:
    """Print how a dataset differs from the requested reference; return the exit code."""
    print_problems(listed.changed)
    return 1 if listed.changed else 0
