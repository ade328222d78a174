"""What an argument of `podferry dataset …` means: its files, what names them, and what changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from podferry.cli import output as printing
from podferry.cli.options import config_of, local_path, reference, run
from podferry.contract.errors import Changed, Problem
from podferry.contract.manifest import Manifest, decode_manifest
from podferry.contract.quantity import format_bytes
from podferry.contract.reference import Reference, reference_to
from podferry.contract.spec import Shard, Unpack
from podferry.contract.uri import parse_uri
from podferry.sidecar.dataset.selection import Selection, open_selected, part_of, selected
from podferry.storage.listing.dataset import check_frozen
from podferry.storage.store import StoreConfig

PROBED = 4096
"""Bytes of a local file that tell whether it is a manifest."""


class ListedDataset(msgspec.Struct, frozen=True):
    """A dataset, or what was selected of it, and what it is called.

    Attributes:
        manifest: The files, of a shard where one is asked for, of a pack those that are in it.
        named: What a reference names: the whole selection, of a pack its objects.
        changed: How it differs from the reference that was asked for.
    """

    manifest: Manifest
    named: Manifest
    changed: tuple[Problem, ...] = ()

    @property
    def reference(self) -> Reference:
        """What names the dataset as it is now."""
        return reference_to(self.named)


def load(
    text: str,
    include: tuple[tuple[str, ...], ...] = (),
    exclude: tuple[tuple[str, ...], ...] = (),
    shard: Shard | None = None,
    **access: Any,
) -> ListedDataset:
    """What an argument means.

    Args:
        text: A URI, a reference, a path, or the path of a manifest.
        include: Lists of globs, as the options have them.
        exclude: The same.
        shard: The part of it.
        **access: See `config_of`.

    Raises:
        EmptyDataset, Refused, Corrupt, FormatTooNew, InvalidWish and the store's errors: Why it cannot be
            listed.
    """
    selection = Selection(sum(include, ()), sum(exclude, ()))
    path = local_path(text)
    if path is not None and _is_manifest(path):
        whole = decode_manifest(path.read_bytes(), str(path))
        manifest = selected(whole, parse_uri(whole.uri), selection)
        return ListedDataset(part_of(manifest, shard), manifest)
    asked = reference(text)
    return run(_listed(asked, selection, shard, config_of(**access)))


async def _listed(
    asked: Reference, selection: Selection, shard: Shard | None, config: StoreConfig
) -> ListedDataset:
    dataset = await open_selected(asked.uri, selection, config, Unpack.AUTO)
    await dataset.store.close()
    named = dataset.named
    if dataset.pack is not None:
        printing.say(f"note: packed into {named.files:,} objects of {format_bytes(named.bytes)}; its files:")
    part = part_of(dataset.manifest, shard)
    return ListedDataset(part, named, tuple(_changes(asked, named)))


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
