from __future__ import annotations

import pytest

from podferry.contract.errors import NotFound, Refused
from podferry.sidecar.checkpoint.pipeline import restore_plan
from podferry.sidecar.staging.volume_capacity import Capacity
from tests.support.checkpoint_job import life


async def test_a_pod_resumes_from_the_previous_pods_newest_checkpoint(any_rig, work):
    first = work()
    assert first.summary().endswith("training starts from the beginning")
    assert await life(first, any_rig, "epoch-1.bin", "epoch-2/w.bin") is None
    newest = any_rig.store.commits()[-1].name
    for path in sorted(any_rig.root.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (any_rig.control / "journal.json").unlink()
    second = work()
    assert await life(second, any_rig) == newest
    assert f"resuming from {newest}" in second.summary()
    assert await life(second, any_rig, "epoch-3.bin") == newest
    await any_rig.committed(3)


async def test_plan_fails_if_a_required_checkpoint_is_missing(work):
    with pytest.raises(NotFound):
        await work(restore="latest").plan()


async def test_never_restores_nothing(any_rig, work):
    await life(work(), any_rig, "epoch-1.bin")
    (any_rig.root / "epoch-1.bin").unlink()
    assert await life(work(restore="never"), any_rig) is None
    assert list(any_rig.root.iterdir()) == []


async def test_only_files_that_are_not_there_yet_need_space(any_rig, work, monkeypatch):
    await life(work(), any_rig, "epoch-1.bin")
    monkeypatch.setattr(restore_plan, "measure", lambda directory: Capacity(volume_bytes=100))
    await work().plan()  # an earlier start of the worker has brought it
    (any_rig.root / "epoch-1.bin").unlink()
    with pytest.raises(Refused, match="larger than its volume"):
        await work().plan()
