"""The step `cache` as a KFP component."""

# KFP copies only the function's source into its step and reads its annotations as values. So there is no
# `from __future__ import annotations` here, imports are inside, and outputs are an inline NamedTuple.
# The inputs of a component are flat, so there are many arguments.
# mypy: disable-error-code=valid-type
# ruff: noqa: PLC0415, PLR0913
from typing import NamedTuple

from kfp import dsl

from podferry.components.step import step


@step
def cache(
    report: dsl.Output[dsl.HTML],
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
    run: str = "",
) -> NamedTuple(
    "Outputs",
    [
        ("reference", str),
        ("dataset_size", str),
        ("sidecar_memory", str),
        ("process_memory", str),
        ("pod_memory", str),
    ],
):
    """Plan the memory of a training pod; fail, with numbers and remedies, if it cannot fit.

    Args:
        report: A page about the plan.
        reference: The dataset; a frozen reference is compared with the store.
        dataset_size: Memory to reserve for the data, such as 14Gi; empty to compute it.
        checkpoint_size: Bytes of one checkpoint; empty for a training without checkpoints.
        keep_local: Durable checkpoints to keep in memory.
        shm_size: Size of the trainer's /dev/shm.
        train_memory: Memory of the training itself, without its /dev/shm and its checkpoints.
        pod_memory: Limit for the entire pod, from nodes or quotas; empty for no limit.
        endpoint: URL of the object store, unless it is the vendor's.
        region: Region of the object store.
        include: Globs of the files to include, such as "*.jpg, *.png"; empty for all.
        exclude: Globs of the files to exclude.
        unpack: Which archives to unpack: auto, never or always; empty for auto.
        medium: Where the data is stored: memory or disk; empty for memory.
        shards: Number of pods that share the dataset, one part each.
        run: Identifier of this run: KFP's cache never answers the step.

    Returns:
        reference: The dataset, frozen.
        dataset_size: Memory to reserve for the data.
        sidecar_memory: Memory of the sidecar.
        process_memory: `memory` of gpu_train: train_memory and shm_size; empty without train_memory.
        pod_memory: Memory of the entire pod.
    """
    from podferry.components.data.cache.runner import CacheRequest, plan_cache
    from podferry.components.verdict import verdict

    sizes = {"dataset_size": dataset_size, "checkpoint_size": checkpoint_size, "shm_size": shm_size}
    sizes |= {"train_memory": train_memory, "pod_memory": pod_memory}
    data = {"include": include, "exclude": exclude, "unpack": unpack, "medium": medium}
    request = CacheRequest(reference, keep_local=keep_local, shards=shards, **sizes, **data)
    return verdict(plan_cache, request, endpoint, region, report.path)
