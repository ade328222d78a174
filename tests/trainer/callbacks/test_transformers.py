"""The callback for Hugging Face's Trainer, with an imitated library."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from podferry.trainer.ferry import Ferry
from tests.trainer.callbacks.conftest import Recorder, module

CALLBACK = "podferry.trainer.callbacks.transformers"


@pytest.fixture
def callback(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Its module, imported with the imitated library."""
    library = module("transformers", TrainerCallback=object)
    monkeypatch.setitem(sys.modules, "transformers", library)
    utils = module("transformers.trainer_utils", PREFIX_CHECKPOINT_DIR="checkpoint")
    monkeypatch.setitem(sys.modules, "transformers.trainer_utils", utils)
    sys.modules.pop(CALLBACK, None)
    yield importlib.import_module(CALLBACK)
    del sys.modules[CALLBACK]


@dataclass
class Arguments:
    """Of a Trainer, and its own `distributed_state`, with what was marked at the barrier."""

    output_dir: str
    world_size: int
    local_process_index: int
    recorder: Recorder
    marked_at_barrier: list[str] | None = None

    @property
    def distributed_state(self) -> Arguments:
        return self

    def wait_for_everyone(self) -> None:
        self.marked_at_barrier = list(self.recorder.marked)


@dataclass
class State:
    global_step: int


@pytest.mark.parametrize(
    ("world", "local_rank", "marked", "at_barrier"),
    [(1, 0, ["checkpoint-20"], None), (2, 0, ["checkpoint-20"], []), (2, 1, [], [])],
)
def test_the_first_process_of_a_node_marks_after_the_barrier(
    callback: ModuleType,
    checkpoints: Path,
    ferry: Ferry,
    recorder: Recorder,
    world: int,
    local_rank: int,
    marked: list[str],
    at_barrier: list[str] | None,
) -> None:
    (checkpoints / "checkpoint-20").mkdir()
    arguments = Arguments(str(checkpoints), world, local_rank, recorder)
    callback.MarkCheckpoints(ferry).on_save(arguments, State(20), None, model=None)
    assert recorder.marked == marked
    assert arguments.marked_at_barrier == at_barrier


def test_without_the_library_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.delitem(sys.modules, CALLBACK, raising=False)
    with pytest.raises(ImportError, match=r"cannot import transformers .*Run: pip install transformers"):
        importlib.import_module(CALLBACK)
