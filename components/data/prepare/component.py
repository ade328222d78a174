"""The step `prepare` as a KFP component."""

# KFP copies only the function's source into its step and reads its annotations as values. So there is no
# `from __future__ import annotations` here, imports are inside, and outputs are an inline NamedTuple.
# The inputs of a component are flat, so there are many arguments.
# mypy: disable-error-code=valid-type
# ruff: noqa: PLC0415, PLR0913, B006, UP006, UP035
from typing import Any, Dict, List, NamedTuple

from podferry.components.step import step


@step
def prepare(
    reference: str,
    to: str,
    command: List[str],
    parameters: Dict[str, Any] = {},
    endpoint: str = "",
    region: str = "",
    to_endpoint: str = "",
    to_region: str = "",
    run: str = "",
) -> NamedTuple("Outputs", [("reference", str), ("files", int), ("converted", bool)]):
    """Convert a dataset with a command, once for its content and the parameters.

    Args:
        reference: The dataset; a URI is frozen first.
        to: URI of the destination, which may be that of many conversions.
        command: Words of the command. It reads the directory $PODFERRY_DATASET and writes files to the
            directory $PODFERRY_TARGET; $PODFERRY_PARAMETERS is JSON.
        parameters: JSON values on which the result depends.
        endpoint: URL of the object store.
        region: Region of the object store.
        to_endpoint: URL of the destination's store, if it is another one.
        to_region: Its region.
        run: Identifier of this run: KFP's cache never answers the step.

    Returns:
        reference: The result, frozen.
        files: Number of its files.
        converted: Whether this run has converted; else the result was there.
    """
    from podferry.components.data.prepare.runner import prepare_dataset
    from podferry.components.verdict import verdict

    access = {"endpoint": endpoint, "region": region, "to_endpoint": to_endpoint, "to_region": to_region}
    done = verdict(prepare_dataset, reference, to, command, parameters, **access)
    return (done.reference, done.files, done.converted)
