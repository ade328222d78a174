"""`gpu_train`: sets the annotations of a training task's pod, and reserves its GPUs."""

from __future__ import annotations

from typing import Any


def gpu_train(  # noqa: PLR0913 - keywords, one per setting
    task: Any,
    *,
    dataset: Any = None,
    checkpoints: Any = None,
    outputs: Any = None,
    accelerator: Any = "nvidia.com/gpu",
    gpus: Any = 1,
    memory: Any = None,
    shm_size: Any = None,
    secret: Any = None,
    endpoint: Any = None,
    region: Any = None,
    **settings: Any,
) -> Any:
    """Stage a training task's dataset, upload its checkpoints, and reserve its GPUs.

    `dataset`, `checkpoints` and `outputs` are the task's inputs of these names, unless they are given; an
    empty text means none. A value may be a constant, an output of another task, or a text with outputs: the
    annotation refers to the task's input that carries it, and the task gets one if it has none. You may also
    write `$(inputs.NAME)` yourself.

    KFP's cache compares a task's inputs, but neither its annotations nor the content of artifacts. So the
    task is excluded from the cache, unless a parameter carries the frozen dataset: the `reference` of
    `dataset` or `cache`, or a constant with `#sha256=`. Warns if an input is an artifact.

    Args:
        task: A step inside a pipeline; its image does not need podferry.
        dataset: URI, reference, declared name, or a channel of one. For several datasets, a mapping by name.
        checkpoints: URI of the destination.
        outputs: URI of the destination of other results.
        accelerator: Kubernetes resource of the accelerator.
        gpus: Number of accelerators; 0 for none.
        memory: Memory limit of the training process alone. Memory for the checkpoints that it writes is
            added when the pod is created.
        shm_size: Size of its `/dev/shm`.
        secret: Name of a Secret with the credentials.
        endpoint: URL of the object store, unless it is the vendor's.
        region: Region of the object store.
        **settings: Further annotations with `_` for `-`: `dataset_size`, `include`, `shard`, `medium`,
            `checkpoint_size` and `output_size` (unless given those of the policy, or else 1Gi), …. A setting
            of one of several datasets is a mapping by name; globs may be a list.

    Returns:
        The task.

    Raises:
        InvalidSpec: All errors, before anything is set.
    """
    # What parses settings takes longer to import than all the other names of `podferry.components` together.
    from podferry.components.training.gpu_train.train_on_gpus import Resources, train_on_gpus  # noqa: PLC0415

    locations = {"dataset": dataset, "checkpoints": checkpoints, "outputs": outputs}
    access = {"shm_size": shm_size, "secret": secret, "endpoint": endpoint, "region": region}
    return train_on_gpus(task, locations, access | settings, Resources(accelerator, gpus, memory))
