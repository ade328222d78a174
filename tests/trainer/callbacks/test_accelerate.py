"""Accelerate's `save_state`: the mark follows the barrier, on the first process of a node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podferry.trainer.callbacks.accelerate import save_state
from podferry.trainer.ferry import Ferry
from tests.trainer.callbacks.conftest import Recorder


class FakeAccelerator:
    """Writes one file; keeps what it was asked, and what was marked at the barrier."""

    def __init__(self, recorder: Recorder, *, first: bool = True) -> None:
        self.is_local_main_process = first
        self.settings: dict[str, Any] = {}
        self.marked_at_barrier: list[str] | None = None
        self._recorder = recorder

    def save_state(self, output_dir: Any = None, **settings: Any) -> Any:
        self.settings = settings
        Path(output_dir).mkdir()
        (Path(output_dir) / "optimizer.bin").write_bytes(b"moments")
        return str(output_dir)

    def wait_for_everyone(self) -> None:
        self.marked_at_barrier = list(self._recorder.marked)


@pytest.mark.parametrize(("first", "marked"), [(True, ["step-1"]), (False, [])])
def test_the_first_process_of_a_node_marks_after_the_barrier(
    first: bool, marked: list[str], checkpoints: Path, ferry: Ferry, recorder: Recorder
) -> None:
    accelerator = FakeAccelerator(recorder, first=first)
    saved = save_state(accelerator, checkpoints / "step-1", ferry=ferry, safe_serialization=False)
    assert saved == str(checkpoints / "step-1")
    assert accelerator.settings == {"safe_serialization": False}
    assert accelerator.marked_at_barrier == []
    assert recorder.marked == marked
