"""What is not durable, why, and how long a caller waits for it."""

from __future__ import annotations

import asyncio
import io
import threading
import zipfile

from podferry.contract.errors import AccessDenied, Unavailable
from podferry.sidecar.checkpoint.detect import format_checks
from podferry.sidecar.checkpoint.detect.formats.verdict import incomplete
from podferry.storage.memory.store import Fault
from tests.support.patience import PATIENCE

ONE, TWO = b"1" * 5000, b"2" * 5000


def zipped(text: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("weights", text)
    return data.getvalue()


async def test_a_flush_answers_while_the_trainer_keeps_overwriting(any_rig):
    async with any_rig.running() as pipeline:
        any_rig.replace("last.bin", b"0")
        flush = asyncio.create_task(pipeline.flush(PATIENCE))
        number = 0
        while not flush.done():
            number += 1
            before = len(any_rig.store.commits())
            any_rig.replace("last.bin", b"%d" % number)
            await any_rig.until(lambda n=before: flush.done() or len(any_rig.store.commits()) > n)
        assert flush.result().durable
        assert flush.result().last.name == "last"


async def test_a_torn_archive_at_the_end_is_hopeless_at_once(any_rig):
    async with any_rig.running() as pipeline:
        any_rig.write("epoch-1.pt", zipped("one"))
        await any_rig.committed(1)
        any_rig.write("epoch-2.pt", zipped("two")[:-5])
        async with asyncio.timeout(PATIENCE):
            answer = await pipeline.flush(2 * PATIENCE, final=True)
    assert (answer.durable, answer.hopeless, answer.pending) == (False, True, ("epoch-2",))
    assert "zip directory" in answer.problems[0].measured
    assert answer.last.name == "epoch-1"


async def test_an_unfinished_file_in_a_checkpoint_is_reported(any_rig):
    async with any_rig.running() as pipeline:
        any_rig.write("epoch-1/model.bin", ONE)
        any_rig.write("epoch-1/optimizer.tmp", TWO)
        answer = await pipeline.flush(PATIENCE, final=True)
    assert (answer.durable, answer.hopeless) == (False, True)
    assert "optimizer.tmp" in answer.problems[0].measured


async def test_a_store_that_comes_back_gets_everything(any_rig):
    any_rig.faults.append(Fault("write", times=8, error=Unavailable.of("no route")))
    async with any_rig.running() as pipeline:
        any_rig.write("epoch-1.bin", ONE)
        await any_rig.until(lambda: pipeline._status.problems)
        assert not pipeline._tracker._durability({"epoch-1"}, pipeline._now()).hopeless
        assert (await pipeline.flush(PATIENCE)).durable
        await any_rig.until(lambda: pipeline._status.problems == [])


async def test_a_refusal_is_hopeless_for_all_that_wait_behind_it(any_rig):
    any_rig.faults.append(Fault("write", times=1000, error=AccessDenied.of("the key may not write")))
    async with any_rig.running() as pipeline:
        any_rig.write("epoch-1.bin", ONE)
        any_rig.write("epoch-2.bin", TWO)
        async with asyncio.timeout(PATIENCE):
            answer = await pipeline.flush(2 * PATIENCE, final=True)
    assert (answer.durable, answer.hopeless) == (False, True)
    assert answer.pending == ("epoch-1", "epoch-2")
    assert "may not write" in answer.problems[0].what


async def test_nothing_is_called_durable_before_a_scan(rig):
    pipeline = rig.pipeline()
    rig.write("epoch-1.bin", ONE)
    answer = await pipeline.flush(0.01)  # nobody looks
    assert not answer.durable
    assert not answer.hopeless
    assert "is still being scanned" in str(*answer.problems)
    pipeline._detector._watch.close()


async def test_a_running_scan_does_not_make_a_waiting_checkpoint_look_durable(rig, monkeypatch):
    looking, go = threading.Event(), threading.Event()
    go.set()

    def slow(path):
        looking.set()
        assert go.wait(PATIENCE)
        return incomplete("it is torn")

    monkeypatch.setitem(format_checks.FORMAT_CHECKS, ".torn", slow)
    rig.store.gated = "epoch-1"
    async with rig.running() as pipeline:
        rig.write("epoch-1.bin", ONE)
        await rig.until(rig.store.reached.is_set)
        rig.write("epoch-2.torn", TWO)
        await rig.until(lambda: "epoch-2" in pipeline._detector.not_ready and looking.is_set())
        flush = asyncio.create_task(pipeline.flush(3.0))
        await rig.until(lambda: pipeline._tracker.finished_scan >= 1)
        go.clear()
        looking.clear()
        pipeline._detector.wake()
        await rig.until(looking.is_set)
        rig.store.go.set()  # the upload ends while the look is under way
        await rig.until(lambda: pipeline._status.durable)
        go.set()
        answer = await flush
    assert not answer.durable
    assert answer.pending == ("epoch-2",)
