"""`podferry dataset …`: look at a dataset, and freeze it into one reference."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from podferry.cli import printing
from podferry.cli.common import access_options, config_of, local_path, output_option, reference, run
from podferry.cli.sizes import buckets, dataset_size, typical_sizes
from podferry.contract.errors import Changed, Problem
from podferry.contract.manifest import Manifest, decode_manifest, encode_manifest
from podferry.contract.memory import charged
from podferry.contract.quantity import format_bytes
from podferry.contract.reference import Reference, reference_to
from podferry.contract.spec import PREFIX
from podferry.storage.listing import check_frozen, open_dataset
from podferry.storage.store import StoreConfig

PROBED = 4096
"""Bytes of a local file that tell whether it is a manifest."""


class Listed(msgspec.Struct, frozen=True):
    """A dataset, and what it is called.

    Attributes:
        manifest: Its files.
        reference: What names it as it is now.
        changed: How it differs from the reference that was asked for.
    """

    manifest: Manifest
    reference: Reference
    changed: tuple[Problem, ...] = ()


@click.group()
def command() -> None:
    """Look at a dataset, and freeze it into one reference.

    URI is a prefix or one object (s3://bucket/digits), a path of local files, a reference as `freeze` prints
    it, or the path of a manifest that `freeze --manifest` wrote.
    """


@command.command("ls")
@click.argument("uri")
@click.option("--limit", type=click.IntRange(min=1), help="Print only so many files.  [default: all]")
@output_option
@access_options
def ls(uri: str, limit: int | None, output: str, **access: Any) -> int:
    """Print the files' sizes and names."""
    listed = load(uri, **access)
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
@output_option
@access_options
def info(uri: str, output: str, **access: Any) -> int:
    """Print sizes, the digest, and the memory that it takes."""
    listed = load(uri, **access)
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
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the list of files there, as JSON.",
)
@output_option
@access_options
def freeze(uri: str, target: Path | None, output: str, **access: Any) -> int:
    """Print the reference that names the dataset as it is now: one line.

    A reference that is no longer true is frozen anew; what changed is said.
    """
    listed = load(uri, **access)
    if target is not None:
        target.write_bytes(encode_manifest(listed.manifest))
    if output == "json":
        printing.show_json(totals(listed))
    else:
        click.echo(str(listed.reference))
    printing.say(f"frozen: {count(listed.manifest)}")
    for problem in listed.changed:
        printing.say(f"note: {problem.what} ({problem.measured})")
    return 0


def load(text: str, **access: Any) -> Listed:
    """The dataset that an argument means.

    Raises:
        EmptyDataset, Corrupt, FormatTooNew, InvalidWish and the store's errors: Why it cannot be listed.
    """
    path = local_path(text)
    if path is not None and _is_manifest(path):
        manifest = decode_manifest(path.read_bytes(), str(path))
        return Listed(manifest, reference_to(manifest))
    asked = reference(text)
    return run(_listed(asked, config_of(**access)))


async def _listed(asked: Reference, config: StoreConfig) -> Listed:
    dataset = await open_dataset(asked.uri, config)
    await dataset.store.close()
    manifest = dataset.manifest
    return Listed(manifest, reference_to(manifest), tuple(_changes(asked, manifest)))


def _changes(asked: Reference, manifest: Manifest) -> Iterator[Problem]:
    """How a dataset differs from what a reference promises: its digest, else the figures it tells."""
    try:
        check_frozen(asked, manifest)
    except Changed as error:
        yield from (
            msgspec.structs.replace(problem, measured=f"{_difference(asked, manifest)}; {problem.measured}")
            for problem in error.problems
        )
        return
    told = (("bytes", asked.bytes, manifest.bytes), ("files", asked.files, manifest.files))
    remedy = "Freeze the dataset again with `podferry dataset freeze`"
    for name, said, found in told:
        if said is not None and said != found:
            what = f"the reference to {asked.uri} tells another number of {name} than there are"
            yield Problem(what, f"{name}={said}; there are {found:,}", remedy)


def _difference(asked: Reference, manifest: Manifest) -> str:
    """What changed, as far as the figures tell."""
    files = _more("files", manifest.files - asked.files) if asked.files is not None else ""
    count = _more("bytes", manifest.bytes - asked.bytes) if asked.bytes is not None else ""
    if not files and not count and None not in {asked.files, asked.bytes}:
        return "as many files and bytes, but names, sizes or contents differ"
    return " and ".join(filter(None, (files, count))) or "the list of files differs"


def _more(what: str, by: int) -> str:
    unit = what.removesuffix("s") if abs(by) == 1 else what
    return f"{abs(by):,} {unit} {'more' if by > 0 else 'fewer'}" if by else ""


def _is_manifest(path: Path) -> bool:
    """Whether a local file looks like a manifest; to mean the file itself, write file:///its/path."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(PROBED)
    return head.lstrip().startswith(b"{") and b'"digest"' in head and b'"uri"' in head


def count(manifest: Manifest) -> str:
    """Files and bytes in words."""
    files = "1 file" if manifest.files == 1 else f"{manifest.files:,} files"
    return f"{files}, {format_bytes(manifest.bytes)}"


def totals(listed: Listed) -> dict[str, Any]:
    """What names and counts a dataset, for machines."""
    return {
        "uri": str(listed.reference.uri),
        "reference": str(listed.reference),
        "digest": listed.manifest.digest,
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
        "charged": charged(sizes),
        "dataset_size": dataset_size(sizes),
    }


def described(listed: Listed) -> list[tuple[str, str]]:
    """Names and values for people."""
    manifest = listed.manifest
    sizes = [entry.size for entry in manifest.entries]
    typical = ", ".join(f"{name} {format_bytes(size)}" for name, size in typical_sizes(sizes).items())
    return [
        ("dataset", str(listed.reference.uri)),
        ("files", f"{manifest.files:,}"),
        ("bytes", f"{manifest.bytes:,} ({format_bytes(manifest.bytes)})"),
        ("sizes", typical),
        ("digest", f"sha256={manifest.digest}"),
        (
            "memory",
            f"{format_bytes(charged(sizes))} charged when staged: whole pages, and the kernel's inodes",
        ),
        (PREFIX + "dataset-size", f"{dataset_size(sizes)}; the reference below needs none"),
        ("reference", str(listed.reference)),
    ]


def tell_changed(listed: Listed) -> int:
    """Say how a dataset differs from the reference that was asked for; the exit code."""
    printing.complain(listed.changed)
    return 1 if listed.changed else 0
