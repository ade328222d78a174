"""Reads back which podferry annotations a task has."""

from __future__ import annotations

from typing import Any

from podferry.contract.spec import PREFIX


def settings_of(task: Any) -> dict[str, str]:
    """A task's podferry annotations without their prefix, as `gpu_train` or its author has set them."""
    metadata = task.platform_config.get("kubernetes", {}).get("podMetadata", {})
    annotations: dict[str, str] = metadata.get("annotations", {})
    return {key.removeprefix(PREFIX): text for key, text in annotations.items() if key.startswith(PREFIX)}
