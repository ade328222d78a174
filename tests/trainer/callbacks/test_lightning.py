"""The callback for Lightning, with an imitated library under each of its two names."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from podferry.trainer.ferry import Ferry
from tests.trainer.callbacks.conftest import Recorder, module

CALLBACK = "podferry.trainer.callbacks.lightning"
LIBRARIES = ("lightning", "pytorch_lightning")


class AsyncIO:
    """Lightning's plugin that writes in a thread."""


class WrappingIO:
    """A plugin around another."""

    def __init__(self, checkpoint_io: object = None) -> None:
        self.checkpoint_io = checkpoint_io


class FakeTrainer:
    """Writes a file per checkpoint. It is its own `strategy`, too."""

    def __init__(self, checkpoint_io: object, local_rank: int = 0) -> None:
        self.checkpoint_io = checkpoint_io
        self.local_rank = local_rank
        self.weights_only: list[bool] = []

    @property
    def strategy(self) -> FakeTrainer:
        return self

    def save_checkpoint(self, filepath: Path, weights_only: bool = False) -> None:
        filepath.write_bytes(b"weights")
        self.weights_only.append(weights_only)


@pytest.fixture(params=LIBRARIES)
def callback(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Its module, imported with the imitated library."""
    for library in LIBRARIES:
        monkeypatch.setitem(sys.modules, library, None)
    name = "lightning.pytorch" if request.param == "lightning" else request.param
    monkeypatch.setitem(sys.modules, request.param, module(request.param))
    monkeypatch.setitem(sys.modules, name, module(name, Callback=object))
    monkeypatch.setitem(sys.modules, f"{name}.plugins", module("plugins", AsyncCheckpointIO=AsyncIO))
    sys.modules.pop(CALLBACK, None)
    yield importlib.import_module(CALLBACK)
    del sys.modules[CALLBACK]


def test_each_save_is_marked_once(
    callback: ModuleType, checkpoints: Path, ferry: Ferry, recorder: Recorder
) -> None:
    trainer: Any = FakeTrainer(WrappingIO())
    marks = callback.MarkCheckpoints(ferry)
    marks.setup(trainer, None, "fit")
    marks.setup(trainer, None, "validate")
    trainer.save_checkpoint(checkpoints / "last.ckpt", True)
    assert recorder.marked == ["last.ckpt"]
    assert trainer.weights_only == [True]


@pytest.mark.parametrize("checkpoint_io", [AsyncIO(), WrappingIO(AsyncIO())])
def test_a_save_that_returns_early_is_not_marked(
    callback: ModuleType, checkpoints: Path, ferry: Ferry, recorder: Recorder, checkpoint_io: object
) -> None:
    trainer: Any = FakeTrainer(checkpoint_io)
    callback.MarkCheckpoints(ferry).setup(trainer, None, "fit")
    trainer.save_checkpoint(checkpoints / "last.ckpt")
    assert recorder.marked == []


def test_only_the_first_process_of_a_node_marks(
    callback: ModuleType, checkpoints: Path, ferry: Ferry, recorder: Recorder
) -> None:
    trainer: Any = FakeTrainer(WrappingIO(), local_rank=1)
    callback.MarkCheckpoints(ferry).setup(trainer, None, "fit")
    trainer.save_checkpoint(checkpoints / "last.ckpt")
    assert recorder.marked == []


def test_without_the_library_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in LIBRARIES:
        monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, CALLBACK, raising=False)
    with pytest.raises(ImportError, match=r"cannot import lightning .*Run: pip install lightning"):
        importlib.import_module(CALLBACK)
