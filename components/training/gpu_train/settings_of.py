"""Reads back which podferry annotations a task has."""

from __future__ import annotations

from typing import Any

from podferry.contract.errors import InvalidSpec
from podferry.contract.spec import PREFIX

CONFIGURED = "podferry_configured"
"""Attribute of a task: `gpu_train` has set its annotations and resources."""
FOLLOWER = "podferry_follower"
"""Attribute of a task: the name of the step that has read its settings."""


def settings_of(task: Any) -> dict[str, str]:
    """A task's podferry annotations without their prefix, as `gpu_train` or its author has set them."""
    metadata = task.platform_config.get("kubernetes", {}).get("podMetadata", {})
    annotations: dict[str, str] = metadata.get("annotations", {})
    return {key.removeprefix(PREFIX): text for key, text in annotations.items() if key.startswith(PREFIX)}


def read_by(task: Any, step: Any) -> None:
    """Record that a step has taken a task's settings and inputs: they must not change any more."""
    setattr(task, FOLLOWER, step.name)


def configure_once(task: Any) -> None:
    """Record that `gpu_train` configures a task.

    KFP removes neither annotations nor resources from a task, so a second call could not replace the first.

    Raises:
        InvalidSpec: It has done so already.
    """
    if getattr(task, CONFIGURED, False):
        remedy = "Give all settings in one call; train() calls gpu_train itself and takes its keywords"
        raise InvalidSpec.of("gpu_train is called twice on one step", task.name, remedy)
    setattr(task, CONFIGURED, True)


def refuse_if_read(task: Any) -> None:
    """Raise `InvalidSpec` if a step has taken the settings of a task already."""
    if (step := getattr(task, FOLLOWER, None)) is not None:
        remedy = f"Call gpu_train on {task.name} before the step that has of={task.name}"
        raise InvalidSpec.of(f"gpu_train comes too late for {task.name}", f"{step} has its settings", remedy)
