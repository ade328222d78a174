from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from podferry.pipelines.distributed import worker
from podferry.pipelines.distributed.all_reduce import Group


def test_what_was_saved_is_durable_before_the_failure_on_purpose(monkeypatch, tmp_path):
    calls = []
    opened = SimpleNamespace(
        dataset=tmp_path,
        checkpoints=Path(tmp_path),
        restored=None,
        wait_durable=lambda: calls.append("durable"),
    )
    monkeypatch.setattr(worker, "join", lambda: Group(0, 1, ()))
    monkeypatch.setattr(worker, "ferry", lambda *_, **__: nullcontext(opened))
    with pytest.raises(RuntimeError, match="fails on purpose in epoch 1"):
        worker.work("data", "checkpoints", "lineage", 2, 1)
    assert calls == ["durable"]
