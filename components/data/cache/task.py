"""`cache` adds the step to a pipeline."""

from __future__ import annotations

from typing import Any

from podferry.components.data.cache import component
from podferry.components.step import check_constants, globs_text, uncached


def cache(  # noqa: PLR0913 - keywords, one per setting
    reference: Any,
    *,
    dataset_size: Any = "",
    checkpoint_size: Any = "",
    keep_local: Any = 1,
    shm_size: Any = "",
    train_memory: Any = "",
    pod_memory: Any = "",
    include: Any = "",
    exclude: Any = "",
    unpack: Any = "",
    medium: Any = "",
    shards: Any = 1,
    secret: Any = None,
    endpoint: Any = "",
    region: Any = "",
    image: str | None = None,
) -> Any:
    """A task that plans the memory of a training pod, in every run: KFP's cache is off.

    Args:
        reference: A URI or reference. Every argument but `image` may be a channel.
        dataset_size: Memory to reserve for the data, such as 14Gi; empty to compute it.
        checkpoint_size: Bytes of one checkpoint; empty for a training without checkpoints.
        keep_local: Durable checkpoints to keep in memory.
        shm_size: Size of the trainer's `/dev/shm`.
        train_memory: Memory of the training itself, without its `/dev/shm` and its checkpoints.
        pod_memory: Limit for the entire pod, from nodes or quotas; empty for no limit.
        include: Globs of the files to include: a text or a list.
        exclude: Globs of the files to exclude, likewise.
        unpack: Which archives to unpack: auto, never or always; empty for auto.
        medium: Where the data is stored: memory or disk; empty for memory.
        shards: Number of pods that share the dataset, one part each.
        secret: Name of a Secret with the credentials; None for the pod's identity.
        endpoint: URL of the object store, unless it is the vendor's.
        region: Region of the object store.
        image: Image of the step; None for `PODFERRY_IMAGE` or the default.

    Returns:
        The task, with the outputs `reference`, `dataset_size`, `sidecar_memory`, `process_memory` (`memory`
        of `gpu_train`; empty without `train_memory`) and `pod_memory`.

    Raises:
        InvalidSpec: Every constant that is invalid.
    """
    sizes = {"dataset_size": dataset_size, "checkpoint_size": checkpoint_size, "shm_size": shm_size}
    sizes |= {"train_memory": train_memory, "pod_memory": pod_memory}
    data = {"include": globs_text(include), "exclude": globs_text(exclude), "unpack": unpack}
    data |= {"medium": medium, "keep_local": keep_local, "shards": shards}
    inputs = {"reference": reference, **sizes, **data, "endpoint": endpoint, "region": region}
    check_constants(secret=secret, image=image, **inputs)
    return uncached(component.cache(**inputs), secret, image=image)
