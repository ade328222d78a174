"""Hugging Face's Trainer: `Trainer(..., callbacks=[MarkCheckpoints()])`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from podferry.trainer.callbacks.saved_checkpoint import library_missing, mark_saved
from podferry.trainer.ferry import Ferry

try:
    from transformers import TrainerCallback
    from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
except ImportError as error:
    raise library_missing("transformers", error) from error


class MarkCheckpoints(TrainerCallback):  # type: ignore[misc]  # the library is not installed for type checks
    """Marks each checkpoint once every process has written its files.

    Files that a later callback adds to the checkpoint void its mark: this one comes last.

    Args:
        ferry: The running `with ferry(...)`; None for the agent of `podferry run` or of the pod.
    """

    def __init__(self, ferry: Ferry | None = None) -> None:
        self._ferry = ferry

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Called by the Trainer in every process, after the process has written its own files."""
        # With or without an agent: processes that disagree on a barrier wait for ever.
        if args.world_size > 1 and args.distributed_state is not None:
            args.distributed_state.wait_for_everyone()
        if args.local_process_index == 0:  # every node may have its own files, and its own agent
            saved = Path(args.output_dir, f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}")
            mark_saved(saved, self._ferry)
