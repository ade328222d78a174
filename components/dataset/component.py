"""The step `dataset`, and the function that adds it to a pipeline."""

# KFP copies only the function's source into its step and reads its annotations as values. So there is no
# `from __future__ import annotations` here, imports are inside, and outputs are an inline NamedTuple.
# mypy: disable-error-code=valid-type
# ruff: noqa: PLC0415
from typing import Any, NamedTuple

from kfp import dsl

from podferry.components.step import step, uncached
from podferry.components.store_access import SECRET_DIR


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
    from podferry.components.dataset.runner import freeze_dataset

    frozen = freeze_dataset(uri, endpoint, region, volume_size, include, exclude)
    frozen.write(data.path)
    data.metadata.update(frozen.metadata)
    return (frozen.reference, frozen.files, frozen.size, frozen.fits)


def freeze_dataset(
    uri: Any,
    *,
    endpoint: Any = "",
    region: Any = "",
    volume_size: Any = "",
    include: Any = "",
    exclude: Any = "",
    secret: Any = None,
) -> Any:
    """A task that freezes a dataset, in every run: KFP's cache is off.

    Pass its `reference` to the training as a parameter: training then runs again if the data has changed, and
    may be answered from KFP's cache if it has not.

    Args:
        uri: A prefix, an object or a reference. Every argument may be a channel.
        endpoint: URL of the object store, unless it is the vendor's.
        region: Region of the object store.
        volume_size: Memory to reserve for it; empty to compute it.
        include: Globs of the files to include. The reference is that of the selection: pass the same globs to
            `gpu_train`.
        exclude: Globs of the files to exclude.
        secret: Name of a Secret with the credentials.

    Returns:
        The task, with the outputs `reference`, `files`, `size`, `fits` and the artifact `data`.
    """
    task = dataset(
        uri=uri,
        endpoint=endpoint,
        region=region,
        volume_size=volume_size,
        include=include,
        exclude=exclude,
    )
    return uncached(task, secret, SECRET_DIR)
