"""The step `cache`, and the function that puts it into a pipeline."""

# KFP copies the function's source alone into its step and reads its annotations as values. So there is no
# `from __future__ import annotations` here, imports stand inside, and outputs are a NamedTuple in place.
# A component's inputs are flat, hence many arguments.
# mypy: disable-error-code=valid-type
# ruff: noqa: PLC0415, PLR0913
from typing import Any, NamedTuple

from podferry.components.step import step, verdict
from podferry.components.store_access import SECRET_DIR


@step
def cache(
    reference: str,
    dataset_size: str = "",
    checkpoint_size: str = "",
    keep_local: int = 1,
    shm_size: str = "",
    train_memory: str = "",
    pod_memory: str = "",
    endpoint: str = "",
    region: str = "",
    include: str = "",
    exclude: str = "",
    unpack: str = "",
    medium: str = "",
    shards: int = 1,
) -> NamedTuple(
    "Outputs",
    [
        ("reference", str),
        ("dataset_size", str),
        ("sidecar_memory", str),
        ("trainer_memory", str),
        ("pod_memory", str),
    ],
):
    """Plan the cache of a training pod: red, with numbers and remedies, when it cannot fit.

    Args:
        reference: The dataset; a frozen one is compared with what is there.
        dataset_size: Memory reserved for the data, such as 14Gi; empty to take what it needs.
        checkpoint_size: Bytes of one checkpoint; empty for a training without any.
        keep_local: Durable checkpoints that stay in memory.
        shm_size: Size of the trainer's /dev/shm.
        train_memory: What the training itself needs.
        pod_memory: What the whole pod may have, as nodes or quotas allow; empty to check no such limit.
        endpoint: Address of the service, where it is not the vendor's own.
        region: The vendor's name of the region.
        include: Globs of the files to bring, such as "*.jpg, *.png"; empty for all.
        exclude: Globs of the files to leave out.
        unpack: Which archives are unpacked: auto, never or always; empty for auto.
        medium: What the data lies on: memory or disk; empty for memory.
        shards: How many pods share the dataset, a part each.

    Returns:
        reference: The dataset, frozen.
        dataset_size: What to reserve for the data.
        sidecar_memory: What the sidecar needs.
        trainer_memory: What to give the training container.
        pod_memory: What the whole pod needs.
    """
    from podferry.components.cache.runner import CacheRequest, plan_cache

    wish = CacheRequest(
        reference=reference,
        dataset_size=dataset_size,
        checkpoint_size=checkpoint_size,
        keep_local=keep_local,
        shm_size=shm_size,
        train_memory=train_memory,
        pod_memory=pod_memory,
        include=include,
        exclude=exclude,
        unpack=unpack,
        medium=medium,
        shards=shards,
    )
    plan = plan_cache(wish, endpoint, region)
    return (plan.reference, plan.dataset_size, plan.sidecar_memory, plan.trainer_memory, plan.pod_memory)


def plan_cache(reference: Any, *, secret: Any = None, **wishes: Any) -> Any:
    """A task that plans the cache of a training pod in every run, whatever KFP's cache holds.

    Args:
        reference: A URI or reference. Every argument may be a channel.
        secret: Name of a Secret with the credentials.
        **wishes: The other inputs of `cache`: `dataset_size`, `checkpoint_size`, `pod_memory`, …

    Returns:
        The task, with the outputs `reference`, `dataset_size`, `sidecar_memory`, `trainer_memory` and
        `pod_memory`.
    """
    return verdict(cache(reference=reference, **wishes), secret, SECRET_DIR)
