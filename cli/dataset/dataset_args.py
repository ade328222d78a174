"""Resolves the argument of `podferry dataset …`: its files, its reference, and what changed since."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from podferry.cli.options.store_options import parse_dataset, parse_local_path, store_config_of
from podferry.contract.dataset_reference import Reference, reference_to
from podferry.contract.dataset_selection import selection_of
from podferry.contract.errors import Changed, Problem
from podferry.contract.manifest import Manifest, decode_manifest
from podferry.contract.quantity import count_of, format_bytes
from podferry.contract.spec import Shard, Unpack
from podferry.contract.uri import parse_uri
from podferry.sidecar.dataset.selection import Selection, open_selected, select_manifest, shard_manifest
from podferry.sidecar.runtime.messages import print_message
from podferry.storage.listing.dataset import check_frozen
from podferry.storage.store import StoreConfig

MANIFEST_PROBE_BYTES = 4096
"""Bytes at the start of a local file that show whether it is a manifest."""


class ListedDataset(msgspec.Struct, frozen=True):
    """A dataset, or the selected files of it.

    Attributes:
        manifest: The selected files: for a shard only its files, for a pack the files in it.
        frozen: What the reference covers: the entire selection, for a pack its objects.
        changed: How it differs from the requested reference.
        selection: The globs that selected it.
    """

    manifest: Manifest
    frozen: Manifest
    changed: tuple[Problem, ...] = ()
    selection: Selection = Selection()

    @property
    def reference(self) -> Reference:
        """The reference to the selected files in their current state."""
        return reference_to(self.frozen, self.selection.include, self.selection.exclude)


def load_dataset(
    text: str,
    include: tuple[tuple[str, ...], ...] = (),
    exclude: tuple[tuple[str, ...], ...] = (),
    shard: Shard | None = None,
    **access: Any,
) -> ListedDataset:
    """List the dataset that `text` names: a URI, a reference, a path, or the path of a manifest.

    `include` and `exclude` have one list of globs per option; `access` as in `store_config_of`.

    Raises:
        EmptyDataset, Refused, Corrupt, FormatTooNew, InvalidSpec and the store's errors: It cannot be listed.
    """
    selection = Selection(sum(include, ()), sum(exclude, ()))
    path = parse_local_path(text)
    if path is not None and _is_manifest(path):
        frozen = decode_manifest(path.read_bytes(), str(path))
        manifest = select_manifest(frozen, parse_uri(frozen.uri), selection)
        return ListedDataset(shard_manifest(manifest, shard), manifest, selection=selection)
    reference = parse_dataset(text)
    selection = Selection(*selection_of(reference, selection.include, selection.exclude))
    return asyncio.run(_list_dataset(reference, selection, shard, store_config_of(**access)))


async def _list_dataset(
    reference: Reference, selection: Selection, shard: Shard | None, config: StoreConfig
) -> ListedDataset:
    dataset = await open_selected(reference.uri, selection, config, Unpack.AUTO)
    await dataset.store.close()
    frozen = dataset.frozen
    if dataset.pack is not None:
        print_message(
            f"note: packed into {frozen.files:,} objects of {format_bytes(frozen.bytes)}; its files:"
        )
    manifest = shard_manifest(dataset.manifest, shard)
    return ListedDataset(manifest, frozen, tuple(_changes(reference, frozen)), selection)


def _changes(reference: Reference, manifest: Manifest) -> Iterator[Problem]:
    """Compare a dataset with a reference: its digest, or the number of bytes and files."""
    try:
        check_frozen(reference, manifest)
    except Changed as error:
        difference = _difference(reference, manifest)
        yield from (
            msgspec.structs.replace(problem, measured=f"{difference}; {problem.measured}")
            for problem in error.problems
        )
        return
    counts = (("bytes", reference.bytes, manifest.bytes), ("files", reference.files, manifest.files))
    for unit, expected, found in counts:
        if expected is not None and expected != found:
            what = f"the reference to {reference.uri} has a different number of {unit} than the dataset"
            remedy = "Freeze the dataset again with `podferry dataset freeze`"
            yield Problem(what, f"{unit}={expected}; there are {found:,}", remedy)


def _difference(reference: Reference, manifest: Manifest) -> str:
    """What changed, according to the numbers of files and bytes in the reference."""
    files = _more("file", manifest.files - reference.files) if reference.files is not None else ""
    size = _more("byte", manifest.bytes - reference.bytes) if reference.bytes is not None else ""
    if not files and not size and None not in {reference.files, reference.bytes}:
        return "as many files and bytes, but names, sizes or contents differ"
    return " and ".join(filter(None, (files, size))) or "the list of files differs"


def _more(noun: str, difference: int) -> str:
    return f"{count_of(abs(difference), noun)} {'more' if difference > 0 else 'fewer'}" if difference else ""


def _is_manifest(path: Path) -> bool:
    """Whether a local file looks like a manifest. Write file:///its/path for the file itself."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(MANIFEST_PROBE_BYTES)
    return head.lstrip().startswith(b"{") and b'"digest"' in head and b'"uri"' in head
