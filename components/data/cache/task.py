"""`cache` adds the step to a pipeline."""

from __future__ import annotations

from typing import Any

from podferry.components.data.cache import component
from podferry.components.step import uncached
from podferry.components.store_access import SECRET_DIR


def cache(reference: Any, *, secret: Any = None, **inputs: Any) -> Any:
    """A task that plans the memory of a training pod, in every run: KFP's cache is off.

    Args:
        reference: A URI or reference. Every argument may be a channel.
        secret: Name of a Secret with the credentials.
        **inputs: The other inputs of `cache`: `dataset_size`, `checkpoint_size`, `pod_memory`, …

    Returns:
        The task, with the outputs `reference`, `dataset_size`, `sidecar_memory`, `trainer_memory` and
        `pod_memory`.
    """
    return uncached(component.cache(reference=reference, **inputs), secret, SECRET_DIR)
