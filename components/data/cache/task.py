"""`cache` adds the step to a pipeline."""

from __future__ import annotations

from typing import Any

from podferry.components.data.cache import component
from podferry.components.step import check_constants, globs_text, uncached


def cache(reference: Any, *, secret: Any = None, image: str | None = None, **inputs: Any) -> Any:
    """A task that plans the memory of a training pod, in every run: KFP's cache is off.

    Args:
        reference: A URI or reference. Every argument but `image` may be a channel.
        secret: Name of a Secret with the credentials; None for the pod's identity.
        image: Image of the step; None for `PODFERRY_IMAGE` or the default.
        **inputs: The other inputs of `cache`: `dataset_size`, `checkpoint_size`, `pod_memory`, …

    Returns:
        The task, with the outputs `reference`, `dataset_size`, `sidecar_memory`, `process_memory` and
        `pod_memory`.

    Raises:
        InvalidSpec: Every constant that is invalid.
    """
    inputs |= {name: globs_text(inputs[name]) for name in ("include", "exclude") if name in inputs}
    check_constants(reference=reference, secret=secret, image=image, **inputs)
    return uncached(component.cache(reference=reference, **inputs), secret, image=image)
