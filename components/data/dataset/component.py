"""The step `dataset` as a KFP component."""

# KFP copies only the function's source into its step and reads its annotations as values. So there is no
# `from __future__ import annotations` here, imports are inside, and outputs are an inline NamedTuple.
# The inputs of a component are flat, so there are many arguments.
# mypy: disable-error-code=valid-type
# ruff: noqa: PLC0415, PLR0913
from typing import NamedTuple

from kfp import dsl

from podferry.components.step import step


@step
def dataset(
    data: dsl.Output[dsl.Dataset],
    report: dsl.Output[dsl.HTML],
    uri: str,
    endpoint: str = "",
    region: str = "",
    fits: str = "",
    include: str = "",
    exclude: str = "",
    run: str = "",
) -> NamedTuple("Outputs", [("reference", str), ("files", int), ("size", str)]):
    """List and freeze a dataset: one reference that pins its content. Fail if it does not fit.

    Args:
        data: A small document that names the dataset; its metadata holds the reference.
        report: A page about it.
        uri: A prefix or an object, or a reference to compare with the store.
        endpoint: URL of the object store, unless it is the vendor's.
        region: Region of the object store.
        fits: The volume that it must fit into, such as 64Gi; empty for any.
        include: Globs of the files to include, such as "*.jpg, *.png"; empty for all.
        exclude: Globs of the files to exclude.
        run: Identifier of this run: KFP's cache never answers the step.

    Returns:
        reference: URI with digest, bytes and files.
        files: Number of files.
        size: Memory to reserve for it.
    """
    from podferry.components.data.dataset.runner import freeze_dataset
    from podferry.components.verdict import verdict

    frozen = verdict(freeze_dataset, uri, endpoint, region, fits, include, exclude, report.path)
    frozen.write(data.path)
    data.metadata.update(frozen.metadata)
    return (frozen.reference, frozen.files, frozen.size)
