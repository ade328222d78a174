"""`train_job` adds the step to a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podferry.components.training.train_job import component


def train_job(  # noqa: PLR0913 - keywords, one per setting
    runtime: Any,
    *,
    trainer: Mapping[str, Any] | None = None,
    runtime_kind: Any = "ClusterTrainingRuntime",
    spec: Mapping[str, Any] | None = None,
    target: Any = "node",
    dataset: Any = None,
    checkpoints: Any = None,
    start_timeout: Any = 0,
    image: str | None = None,
    **settings: Any,
) -> Any:
    """A task that runs a TrainJob of Kubeflow Trainer to its end.

    KFP's cache may answer it only if `dataset` is a frozen reference: then an unchanged training is not run
    again.

    Args:
        runtime: Name of the runtime. Every argument but `image` may be a channel or have some in it.
        trainer: The TrainJob's `spec.trainer`: `image`, `command`, `numNodes`, `resourcesPerNode`, ….
        runtime_kind: `ClusterTrainingRuntime` or `TrainingRuntime`.
        spec: Other members of the TrainJob's spec.
        target: Name of the runtime's replicated Job whose pods train.
        dataset: URI, reference or declared name of the dataset. For several, a mapping by name.
        checkpoints: URI of the destination.
        start_timeout: Seconds until a pod has to run; 0 for no limit.
        image: Image of the step itself, with `podferry[kfp]`.
        **settings: podferry's annotations of the pods with `_` for `-`: `secret`, `endpoint`, `world`,
            `checkpoint_size`, `dataset_size`, `lineage`, …. A setting of one of several datasets is a mapping
            by name; globs may be a list.

    Returns:
        The task, with the outputs `job`, `lineage` and `checkpoints`.

    Raises:
        InvalidSpec: Every keyword that is no setting, and every constant that is invalid.
    """
    # Imported on call: it takes longer than all the names of `podferry.components` together.
    from podferry.components.cluster_job.task import add_job  # noqa: PLC0415

    inputs = {
        "runtime": runtime,
        "runtime_kind": runtime_kind,
        "trainer": trainer,
        "spec": spec,
        "target": target,
        "start_timeout": start_timeout,
    }
    settings |= {"dataset": dataset, "checkpoints": checkpoints}
    return add_job(component.train_job, inputs, settings, image)
