"""Lightning: `Trainer(callbacks=[..., MarkCheckpoints()])`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from podferry.trainer.callbacks.saved_checkpoint import library_missing, mark_saved
from podferry.trainer.ferry import Ferry

try:
    from lightning.pytorch import Callback
    from lightning.pytorch.plugins import AsyncCheckpointIO
except ImportError:
    try:
        from pytorch_lightning import Callback
        from pytorch_lightning.plugins import AsyncCheckpointIO
    except ImportError as error:
        raise library_missing("lightning", error) from error


class MarkCheckpoints(Callback):  # type: ignore[misc]  # the library is not installed for type checks
    """Marks each checkpoint once `Trainer.save_checkpoint` has returned, from whatever code.

    No hook of a callback comes late enough: `on_save_checkpoint` is called before anything is written. So the
    trainer's method is wrapped, which ends with a barrier in every strategy. What `AsyncCheckpointIO` still
    writes after that is not marked, and judged by its format.

    Args:
        ferry: The running `with ferry(...)`; None for the agent of `podferry run` or of the pod.
    """

    def __init__(self, ferry: Ferry | None = None) -> None:
        super().__init__()
        self._ferry = ferry

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Called by the Trainer before each `fit`, `validate` and so on, in every process."""
        if not isinstance(trainer.save_checkpoint, _MarkingSave):
            trainer.save_checkpoint = _MarkingSave(trainer, trainer.save_checkpoint, self._ferry)


class _MarkingSave:
    """`Trainer.save_checkpoint`, followed by the mark."""

    def __init__(self, trainer: Any, save: Callable[..., None], ferry: Ferry | None) -> None:
        self._trainer = trainer
        self._save = save
        self._ferry = ferry

    def __call__(self, filepath: str | os.PathLike[str], *args: Any, **settings: Any) -> None:
        self._save(filepath, *args, **settings)
        # Every node may have its own files, and its own agent.
        if self._trainer.local_rank == 0 and not _returns_early(self._trainer.strategy.checkpoint_io):
            mark_saved(filepath, self._ferry)


def _returns_early(checkpoint_io: Any) -> bool:
    """Whether it, or one that it wraps, writes in a thread."""
    while checkpoint_io is not None and not isinstance(checkpoint_io, AsyncCheckpointIO):
        checkpoint_io = getattr(checkpoint_io, "checkpoint_io", None)
    return checkpoint_io is not None
