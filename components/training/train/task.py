"""`train` adds a training in a container to a pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def train(
    *,
    image: str,
    command: Sequence[str],
    dataset: Any = None,
    checkpoints: Any = None,
    parameters: Mapping[str, Any] | None = None,
    name: str = "train",
    **settings: Any,
) -> Any:
    """A task that runs an image, with its dataset staged and its checkpoints uploaded by the pod's agent.

    The program reads `PODFERRY_DATASET`, writes to `PODFERRY_CHECKPOINTS`, and needs nothing of podferry. It
    gets each parameter as `--NAME VALUE`. KFP's SubprocessRunner runs no containers: there, use a function
    (`train_component`).

    Args:
        image: Any image.
        command: What it runs.
        dataset: URI, reference, or a channel of one.
        checkpoints: URI of the destination.
        parameters: Options of the command: constants or channels.
        name: Of the task and of its component.
        **settings: Further keywords of `gpu_train`: `gpus`, `memory`, `secret`, `endpoint`, ….

    Returns:
        The task, as `gpu_train` returns it.

    Raises:
        InvalidSpec: As `gpu_train` does; or the image, the command or a parameter cannot be used.
    """
    # Imported on call: it takes longer than all the names of `podferry.components` together.
    from podferry.components.training.train.contained import trained_in_container  # noqa: PLC0415

    locations = {"dataset": dataset, "checkpoints": checkpoints}
    return trained_in_container(
        name, image, command, locations, {} if parameters is None else parameters, settings
    )
