"""The step `dataset`, and the function that puts it into a pipeline."""

# KFP copies the function's source alone into its step and reads its annotations as values. So there is no
# `from __future__ import annotations` here, imports stand inside, and outputs are a NamedTuple in place.
# mypy: disable-error-code=valid-type
# ruff: noqa: PLC0415
from typing import Any, NamedTuple

from kfp import dsl

from podferry.components.step import step, verdict
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
        uri: A prefix or an object, or a reference that is to be compared with what is there.
        endpoint: Address of the service, where it is not the vendor's own.
        region: The vendor's name of the region.
        volume_size: Memory reserved for it, such as 14Gi; empty to take what it needs.
        include: Globs of the files to bring, such as "*.jpg, *.png"; empty for all.
        exclude: Globs of the files to leave out.

    Returns:
        reference: URI with digest, bytes and files.
        files: How many files it has.
        size: What to reserve for it.
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
    """A task that freezes a dataset; it looks at the store in every run, whatever KFP's cache holds.

    Pass its `reference` to the training as a parameter: training then runs anew when the data changed, and
    may be answered from KFP's cache when it did not.

    Args:
        uri: A prefix, an object or a reference. Every argument may be a channel.
        endpoint: Address of the service, where it is not the vendor's own.
        region: The vendor's name of the region.
        volume_size: Memory reserved for it; empty to take what it needs.
        include: Globs; the reference is that of the selection, so give `gpu_train` the same ones.
        exclude: The same.
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
    return verdict(task, secret, SECRET_DIR)
