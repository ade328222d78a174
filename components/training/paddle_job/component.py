"""The step `paddle_job` as a KFP component."""

# KFP copies only the function's source into its step and reads its annotations as values. So there is no
# `from __future__ import annotations` here, imports are inside, and outputs are an inline NamedTuple.
# The inputs of a component are flat, so there are many arguments.
# mypy: disable-error-code="valid-type,type-arg"
# ruff: noqa: PLC0415, PLR0913
from typing import NamedTuple

from podferry.components.step import step


@step
def paddle_job(
    worker: dict,
    servers: dict,
    spec: dict,
    settings: dict,
    server_settings: dict,
    dataset: str = "",
    checkpoints: str = "",
    start_timeout: int = 0,
    run: str = "",
) -> NamedTuple("Outputs", [("job", str), ("lineage", str), ("checkpoints", str)]):
    """Run a PaddleJob to its end; fail with the reasons of its pods.

    Args:
        worker: The PaddleJob's spec.worker: replicas and pod template.
        servers: The PaddleJob's spec.ps; empty for a collective training.
        spec: Other members of the PaddleJob's spec.
        settings: podferry's settings of the workers, by key.
        server_settings: podferry's settings of the parameter servers, by key.
        dataset: URI, reference or declared name of the dataset.
        checkpoints: URI of the destination of checkpoints.
        start_timeout: Seconds until a pod has to run; 0 for no limit.
        run: The run's id, or empty: KFP's cache never answers a task that has it.

    Returns:
        job: Name of the PaddleJob.
        lineage: Lineage of the workers' checkpoints.
        checkpoints: Their destination.
    """
    from podferry.components.training.paddle_job.runner import PaddleJobRequest, run_paddle_job
    from podferry.components.verdict import verdict

    request = PaddleJobRequest(
        worker=worker,
        servers=servers,
        spec=spec,
        settings=settings | {"dataset": dataset, "checkpoints": checkpoints},
        server_settings=server_settings,
        start_timeout=start_timeout,
    )
    finished = verdict(run_paddle_job, request, run)
    return (finished.job, finished.lineage, finished.checkpoints)
