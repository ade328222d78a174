"""`train` adds a training in a container to a pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from podferry.components.training.gpu_train.task import gpu_train
from podferry.components.training.train.component import container, input_name
from podferry.contract.errors import InvalidSpec, Problem


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
    given = dict(parameters or {})
    InvalidSpec.raise_any(_problems(image, command, given))
    component = container(name, image, command, given)
    values = {input_name(one): value for one, value in given.items()}
    task = component(dataset=_text(dataset), checkpoints=_text(checkpoints), **values)
    return gpu_train(task, dataset=dataset, checkpoints=checkpoints, **settings)


def _problems(image: str, command: Sequence[str], parameters: Mapping[str, Any]) -> Iterator[Problem]:
    if not image:
        yield Problem("image: not the name of an image", repr(image), "Give the image of the training")
    if isinstance(command, str):
        remedy = "Write a list of words, or ['sh', '-c', TEXT] for a shell"
        yield Problem("command: one text, not a list of words", repr(command), remedy)
    elif not command:
        yield Problem("command: no words", repr(command), "Write what the image has to run")
    for name, value in parameters.items():
        if value is None:
            yield Problem(f"parameter {name}: KFP passes no None", "", "Leave it out")


def _text(place: Any) -> Any:
    return "" if place is None else place
