"""The step `sync` as a KFP component."""

# KFP copies only the function's source into its step and reads its annotations as values. So there is no
# `from __future__ import annotations` here, imports are inside, and outputs are an inline NamedTuple.
# The inputs of a component are flat, so there are many arguments.
# mypy: disable-error-code=valid-type
# ruff: noqa: PLC0415, PLR0913
from typing import NamedTuple

from podferry.components.step import step


@step
def sync(
    source: str,
    destination: str,
    include: str = "",
    exclude: str = "",
    delete: bool = False,
    unpack: bool = False,
    size_only: bool = False,
    endpoint: str = "",
    region: str = "",
    source_endpoint: str = "",
    source_region: str = "",
    destination_endpoint: str = "",
    destination_region: str = "",
    run: str = "",
) -> NamedTuple(
    "Outputs", [("reference", str), ("moved", int), ("bytes", int), ("kept", int), ("removed", int)]
):
    """Make a destination equal to a dataset; only files that differ are moved.

    Args:
        source: A prefix, an object, a manifest or a web directory, frozen or not.
        destination: A prefix.
        include: Globs of the files to sync, such as "*.jpg, *.png"; empty for all.
        exclude: Globs of the files to leave out.
        delete: Remove files at the destination that the source no longer has.
        unpack: Write the members of archives instead of the archives.
        size_only: Files of equal size count as equal.
        endpoint: URL of the object store, for source and destination.
        region: Region of the object store, likewise.
        source_endpoint: URL of the source's store, if it is another one.
        source_region: Its region.
        destination_endpoint: URL of the destination's store, if it is another one.
        destination_region: Its region.
        run: Identifier of this run: KFP's cache never answers the step.

    Returns:
        reference: The destination as it is now, frozen.
        moved: Number of files that were moved.
        bytes: Bytes that were read for them.
        kept: Number of files that were equal.
        removed: Number of files that were removed.
    """
    from podferry.components.data.sync.runner import Place, sync_dataset
    from podferry.components.verdict import verdict

    places = (
        Place(source, source_endpoint or endpoint, source_region or region),
        Place(destination, destination_endpoint or endpoint, destination_region or region),
    )
    done = verdict(sync_dataset, *places, include, exclude, delete=delete, unpack=unpack, size_only=size_only)
    return (done.reference, done.moved, done.bytes, done.kept, done.removed)
