"""Accelerate: `save_state(accelerator, directory)` instead of `accelerator.save_state(directory)`."""

from __future__ import annotations

import os
from typing import Any, Protocol

from podferry.trainer.callbacks.saved_checkpoint import mark_saved
from podferry.trainer.ferry import Ferry


class Accelerator(Protocol):
    """What is used of `accelerate.Accelerator`."""

    @property
    def is_local_main_process(self) -> bool:
        """Whether this is the first process of its node."""
        ...

    def save_state(self, output_dir: Any = None, **settings: Any) -> Any:
        """Save; return the directory."""
        ...

    def wait_for_everyone(self) -> None:
        """Wait for all processes."""
        ...


def save_state(
    accelerator: Accelerator,
    output_dir: str | os.PathLike[str] | None = None,
    *,
    ferry: Ferry | None = None,
    **settings: Any,
) -> Any:
    """Save the state and mark it as complete. Every process calls it, as `Accelerator.save_state` requires.

    Args:
        accelerator: The trainer's.
        output_dir: The checkpoint, in the checkpoint directory; None for Accelerate's own naming.
        ferry: The running `with ferry(...)`; None for the agent of `podferry run` or of the pod.
        **settings: Those of `Accelerator.save_state`.

    Returns:
        What `Accelerator.save_state` returns: the directory.
    """
    saved = accelerator.save_state(output_dir, **settings)
    accelerator.wait_for_everyone()  # it ends without a barrier: others may still write their random states
    if accelerator.is_local_main_process:  # every node may have its own files, and its own agent
        mark_saved(saved, ferry)
    return saved
