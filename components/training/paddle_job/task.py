"""`paddle_job` adds the step to a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podferry.components.training.paddle_job import component


def paddle_job(  # noqa: PLR0913 - keywords, one per setting
    worker: Mapping[str, Any],
    *,
    servers: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    dataset: Any = None,
    checkpoints: Any = None,
    server_settings: Mapping[str, Any] | None = None,
    start_timeout: Any = 0,
    image: str | None = None,
    **settings: Any,
) -> Any:
    """A task that runs a PaddleJob of PaddlePaddle's operator to its end.

    KFP's cache may answer it only if `dataset` is a frozen reference: then an unchanged training is not run
    again.

    Args:
        worker: The PaddleJob's `spec.worker`: `replicas` and the pod `template`. Every argument but `image`
            may be a channel or have some in it.
        servers: The PaddleJob's `spec.ps`, the parameter servers; None for a collective training.
        spec: Other members of the PaddleJob's spec, such as `withGloo`, `intranet`, `cleanPodPolicy`.
        dataset: URI, reference or declared name of the workers' dataset. For several, a mapping by name.
        checkpoints: URI of the destination of the workers' checkpoints.
        server_settings: podferry's settings of the parameter servers, none by default.
        start_timeout: Seconds until a pod has to run; 0 for no limit.
        image: Image of the step itself, with `podferry[kfp]`.
        **settings: podferry's annotations of the workers with `_` for `-`: `secret`, `endpoint`, `world`,
            `checkpoint_size`, `dataset_size`, `lineage`, …. A setting of one of several datasets is a mapping
            by name; globs may be a list.

    Returns:
        The task, with the outputs `job`, `lineage` and `checkpoints`.

    Raises:
        InvalidSpec: Every keyword that is no setting, and every constant that is invalid.
    """
    # Imported on call: it takes longer than all the names of `podferry.components` together.
    from podferry.components.cluster_job.task import add_job  # noqa: PLC0415

    inputs = {"worker": worker, "servers": servers, "spec": spec, "start_timeout": start_timeout}
    settings |= {"dataset": dataset, "checkpoints": checkpoints}
    servers_settings = {"server_settings": server_settings or {}}
    return add_job(component.paddle_job, inputs, settings, image, servers_settings)
