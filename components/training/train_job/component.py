"""The step `train_job` as a KFP component."""

# KFP copies only the function's source into its step and reads its annotations as values. So there is no
# `from __future__ import annotations` here, imports are inside, and outputs are an inline NamedTuple.
# The inputs of a component are flat, so there are many arguments.
# mypy: disable-error-code="valid-type,type-arg"
# ruff: noqa: PLC0415, PLR0913
from typing import NamedTuple

from podferry.components.step import step


@step
def train_job(
    runtime: str,
    runtime_kind: str,
    trainer: dict,
    spec: dict,
    target: str,
    settings: dict,
    dataset: str = "",
    checkpoints: str = "",
    start_timeout: int = 0,
    run: str = "",
) -> NamedTuple("Outputs", [("job", str), ("lineage", str), ("checkpoints", str)]):
    """Run a TrainJob to its end; fail with the reasons of its pods.

    Args:
        runtime: Name of the runtime.
        runtime_kind: ClusterTrainingRuntime or TrainingRuntime.
        trainer: The TrainJob's spec.trainer.
        spec: Other members of the TrainJob's spec.
        target: Name of the runtime's replicated Job whose pods train.
        settings: podferry's settings of these pods, by key.
        dataset: URI, reference or declared name of the dataset.
        checkpoints: URI of the destination of checkpoints.
        start_timeout: Seconds until a pod has to run; 0 for no limit.
        run: The run's id, or empty: KFP's cache never answers a task that has it.

    Returns:
        job: Name of the TrainJob.
        lineage: Lineage of its checkpoints.
        checkpoints: Their destination.
    """
    from podferry.components.training.train_job.runner import TrainJobRequest, run_train_job
    from podferry.components.verdict import verdict

    request = TrainJobRequest(
        runtime=runtime,
        runtime_kind=runtime_kind,
        trainer=trainer,
        spec=spec,
        target=target,
        settings=settings | {"dataset": dataset, "checkpoints": checkpoints},
        start_timeout=start_timeout,
    )
    finished = verdict(run_train_job, request, run)
    return (finished.job, finished.lineage, finished.checkpoints)
