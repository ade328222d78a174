"""Pointer files, which name a checkpoint: each is committed with the one that it named."""

import os
import pickle
from pathlib import Path

import msgspec

from podferry.contract.errors import Unavailable
from podferry.storage.memory.store import Fault
from tests.support.patience import PATIENCE

ONE, TWO = b"1" * 5000, b"2" * 5000


async def test_a_pointer_is_committed_with_the_checkpoint_that_it_names(any_rig):
    async with any_rig.running() as pipeline:
        for step in (1, 2):
            any_rig.write(f"global_step{step}/states.bin", b"%d" % step)
            any_rig.write("latest", f"global_step{step}".encode())
            await any_rig.until(lambda step=step: len(pipeline._status.durable) == step)
        assert (await pipeline.flush(PATIENCE)).durable
    await any_rig.committed(2)
    assert await any_rig.restored() == (
        "global_step2",
        {"global_step2/states.bin": b"2", "latest": b"global_step2"},
    )


async def test_a_pointer_that_moves_on_during_the_upload_is_committed_as_it_was(any_rig):
    any_rig.store.gated = "epoch-1.bin"
    any_rig.write("epoch-1.bin", ONE)
    any_rig.write("latest", b"epoch-1")
    async with any_rig.running() as pipeline:
        await any_rig.until(any_rig.store.reached.is_set)
        any_rig.write("epoch-2.bin", TWO)
        any_rig.write("latest", b"epoch-2")
        any_rig.store.gated = ""
        any_rig.store.go.set()
        assert (await pipeline.flush(PATIENCE)).durable
        last = (await pipeline.flush(PATIENCE, final=True)).last
    assert last.name == "epoch-2"
    found = [any_rig.store.bytes_of(commit) for commit in any_rig.store.commits()]
    assert found[0] == {"epoch-1.bin": ONE, "latest": b"epoch-1"}
    assert found[-1] == {"epoch-2.bin": TWO, "latest": b"epoch-2"}


async def test_a_pointer_that_moves_on_while_no_worker_runs_is_committed_as_it_was(any_rig):
    any_rig.store.gated = "epoch-1.bin"
    path = any_rig.write("epoch-1.bin", ONE)
    any_rig.write("latest", b"epoch-1")
    async with any_rig.running():
        await any_rig.until(any_rig.store.reached.is_set)
        any_rig.faults.append(Fault("write", error=Unavailable.of("killed")))
        any_rig.store.gated = ""
        any_rig.store.go.set()
    path.unlink()
    any_rig.write("latest", b"epoch-2")
    any_rig.write("epoch-2.bin", TWO)
    async with any_rig.running() as pipeline:
        assert (await pipeline.flush(PATIENCE)).durable
    first = any_rig.store.commits()[0]
    assert any_rig.store.bytes_of(first) == {"epoch-1.bin": ONE, "latest": b"epoch-1"}


async def test_a_pointer_that_moves_while_it_is_linked_delays_nothing(rig, monkeypatch):
    rig.settings = msgspec.structs.replace(rig.settings, quiet_seconds_no_close=60.0)
    link, moved = os.link, []

    def moving(source, target, **options):
        if not moved:
            rig.write("latest", b"epoch-2")
            moved.append(source.name)
        link(source, target, **options)

    monkeypatch.setattr(os, "link", moving)
    async with rig.running():
        rig.write("epoch-1.pkl", pickle.dumps(ONE))
        rig.write("latest", b"epoch-1")
        await rig.until(lambda: moved)
        rig.write("epoch-2.pkl", pickle.dumps(TWO))
        await rig.until(lambda: len(rig.store.commits()) == 2 and not list(rig.holds.iterdir()))
    found = [rig.store.bytes_of(commit) for commit in rig.store.commits()]
    assert found == [
        {"epoch-1.pkl": pickle.dumps(ONE), "latest": b"epoch-1"},
        {"epoch-2.pkl": pickle.dumps(TWO), "latest": b"epoch-2"},
    ]


async def test_checkpoints_that_come_faster_than_they_settle_each_have_their_pointer(rig):
    rig.settings = msgspec.structs.replace(rig.settings, quiet_seconds=0.5, quiet_seconds_no_close=60.0)
    async with rig.running() as pipeline:
        for number in range(1, 6):
            rig.write(f"epoch-{number}.pkl", pickle.dumps(b"%d" % number * 5000))
            pointer = rig.write("latest", b"epoch-%d" % number)
            name, seen = f"epoch-{number}", pointer.stat().st_mtime_ns
            await rig.until(
                lambda name=name, seen=seen: any(
                    found.identity.mtime_ns == seen
                    for found in pipeline._detector._pointers.pointers.get(name, {}).values()
                )
            )
        await rig.until(lambda: len(rig.store.commits()) == 5)
    found = [rig.store.bytes_of(commit)["latest"] for commit in rig.store.commits()]
    assert found == [b"epoch-%d" % number for number in range(1, 6)]


async def test_on_a_full_volume_a_pointer_is_held_by_its_link(rig, monkeypatch):
    write_bytes = Path.write_bytes

    def full(path, data):
        if rig.holds in path.parents:
            raise OSError(28, "No space left on device")
        return write_bytes(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    rig.write("epoch-1.bin", ONE)
    rig.write("latest", b"epoch-1")
    async with rig.running() as pipeline:
        assert (await pipeline.flush(PATIENCE, final=True)).durable
    assert rig.store.bytes_of(rig.store.commits()[0]) == {"epoch-1.bin": ONE, "latest": b"epoch-1"}


async def test_what_a_pointer_names_stays(rig):
    rig.settings = msgspec.structs.replace(rig.settings, eviction_threshold=0.0)
    rig.write("best.txt", b"use epoch-1 for the paper")
    async with rig.running() as pipeline:
        for number in (1, 2, 3):
            rig.write(f"epoch-{number}.bin", b"%d" % number * 5000)
            await rig.until(lambda n=number: any(d.name == f"epoch-{n}" for d in pipeline._status.durable))
    lying = {path.name for path in rig.root.iterdir()}
    assert "epoch-1.bin" in lying
    assert "epoch-2.bin" not in lying
