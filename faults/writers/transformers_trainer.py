"""Hugging Face's Trainer: a directory a step, in place: model, optimizer, scheduler, rng, state."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch
from transformers import PretrainedConfig, PreTrainedModel, TrainerState, TrainingArguments
from transformers import Trainer as HfTrainer
from transformers.trainer_utils import get_last_checkpoint

from faults.writers.frame import SMALL, Tensors, Writer, main, parse


class Model(PreTrainedModel):  # type: ignore[misc]
    """Holds the tensors and learns nothing: it saves on request."""

    config_class = PretrainedConfig

    def __init__(self, config: PretrainedConfig, count: int) -> None:
        super().__init__(config)
        self.weight = torch.nn.Parameter(torch.zeros(count))
        for index in range(3):
            setattr(self, f"layer{index}", torch.nn.Parameter(torch.zeros(SMALL)))
        self.post_init()

    def forward(self, labels: torch.Tensor) -> torch.Tensor:
        """Nothing calls it: the Trainer saves without having trained."""
        return labels


class Directory(Writer):
    """`checkpoint-12/…`, written by the Trainer's own `_save_checkpoint`, which its loop calls."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        given = parse()
        self._model = Model(PretrainedConfig(), given.count)
        limit = given.rotate or None
        arguments = TrainingArguments(str(root), save_total_limit=limit, report_to=[], use_cpu=True)
        self._trainer = HfTrainer(self._model, arguments)
        self._trainer.create_optimizer_and_scheduler(1000)

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        self._model.load_state_dict({name: torch.from_numpy(tensor) for name, tensor in tensors.items()})
        self._trainer.state.global_step = step
        self._trainer._save_checkpoint(self._model, trial=None)  # noqa: SLF001 - what its loop calls
        return [[self.root / f"checkpoint-{step}"]]

    def load(self) -> tuple[int, Tensors] | None:
        """See `Writer.load`."""
        found = get_last_checkpoint(str(self.root))
        if found is None:
            return None
        self._trainer._load_from_checkpoint(found)  # noqa: SLF001 - what `resume_from_checkpoint` calls
        state = TrainerState.load_from_json(str(Path(found) / "trainer_state.json"))
        return state.global_step, {name: held.numpy() for name, held in self._model.state_dict().items()}

    def forget(self, step: int) -> None:
        """Nothing: the Trainer does."""


if __name__ == "__main__":
    main(Directory)
