"""`dataset` adds the step to a pipeline."""

from __future__ import annotations

from typing import Any

from podferry.components.data.dataset import component
from podferry.components.step import uncached
from podferry.components.store_access import SECRET_DIR


def dataset(
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
    task = component.dataset(
        uri=uri,
        endpoint=endpoint,
        region=region,
        volume_size=volume_size,
        include=include,
        exclude=exclude,
    )
    return uncached(task, secret, SECRET_DIR)
