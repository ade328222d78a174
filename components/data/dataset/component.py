"""The step `dataset` as a KFP component."""

# KFP copies only the function's source into its step and reads its annotations as values. So there is no
# `from __future__ import annotations` here, imports are inside, and outputs are an inline NamedTuple.
# mypy: disable-error-code=valid-type
# ruff: noqa: PLC0415
from typing import NamedTuple

from kfp import dsl

from podferry.components.step import step


@step
def dataset(
    data: dsl.Output[dsl.Dataset],
    uri: str,
    endpoint: str = "",
    region: str = "",
    volume_size: str = "",
    include: str = "",
    exclude: str = "",
) -> NamedTuple("Outputs", [("reference", str), ("files", int), ("size", str), ("fits", bool)]):
    """List and freeze a dataset: one reference that pins its content.

    Args:
        data: A small document that names the dataset; its metadata holds the reference.
        uri: A prefix or an object, or a reference to compare with the store.
        endpoint: URL of the object store, unless it is the vendor's.
        region: Region of the object store.
        volume_size: Memory to reserve for it, such as 14Gi; empty to compute it.
        include: Globs of the files to include, such as "*.jpg, *.png"; empty for all.
        exclude: Globs of the files to exclude.

    Returns:
        reference: URI with digest, bytes and files.
        files: Number of files.
        size: Memory to reserve for it.
        fits: Whether it fits into volume_size.
    """
    from podferry.components.data.dataset.runner import freeze_dataset
    from podferry.components.verdict import verdict

    frozen = verdict(freeze_dataset, uri, endpoint, region, volume_size, include, exclude)
    frozen.write(data.path)
    data.metadata.update(frozen.metadata)
    return (frozen.reference, frozen.files, frozen.size, frozen.fits)
