"""From a doubtful commit to its confirmation, through a running pipeline."""

from __future__ import annotations

import pickle

import msgspec

from podferry.contract.destination.confidence import CONFIRMED
from podferry.contract.errors import Unavailable
from podferry.storage.memory.store import Fault
from tests.support.patience import PATIENCE

WHOLE = pickle.dumps(list(range(100)))


def confirmations(rig):
    return sorted(name for name in rig.content.objects if f"/{CONFIRMED}/" in name)


async def test_the_next_save_confirms_the_one_before(rig):
    rig.settings = msgspec.structs.replace(rig.settings, quiet_seconds=0.1, quiet_seconds_no_close=1.0)
    async with rig.running() as pipeline:
        rig.write("step-1/a.pkl", WHOLE)
        rig.write("step-1/b.pkl", WHOLE)
        await rig.until(lambda: len(rig.store.commits()) == 1)
        assert [doubt.kind for doubt in rig.store.commits()[0].doubts] == ["unproven"]
        await rig.until(lambda: pipeline._status.durable)
        assert pipeline._status.durable[0].doubts
        rig.write("step-2/a.pkl", WHOLE)
        rig.write("step-2/b.pkl", WHOLE)
        await rig.until(lambda: len(rig.store.commits()) == 2 and confirmations(rig))
        await rig.until(lambda: not any(one.doubts for one in pipeline._status.durable))
        assert (await pipeline.flush(PATIENCE)).durable
    assert confirmations(rig)


async def test_a_successful_end_confirms_the_last(rig):
    async with rig.running() as pipeline:
        rig.write("step-1/a.raw", b"1")
        await rig.until(lambda: len(rig.store.commits()) == 1)
        assert (await pipeline.flush(PATIENCE, final=True, succeeded=True)).durable
        assert confirmations(rig)
        assert not pipeline._status.durable[0].doubts


async def test_an_end_that_is_not_known_leaves_the_last_doubtful(rig):
    async with rig.running() as pipeline:
        rig.write("step-1/a.raw", b"1")
        answer = await pipeline.flush(PATIENCE, final=True)
        assert answer.durable
        assert "first of its series" in answer.last.doubts[0]
    assert confirmations(rig) == []


async def test_a_confirmation_that_fails_is_repeated_and_awaited(rig):
    async with rig.running() as pipeline:
        rig.write("step-1/a.raw", b"1")
        await rig.until(lambda: len(rig.store.commits()) == 1)
        rig.faults.append(
            Fault("write", f"*/{CONFIRMED}/*", error=Unavailable.of("the store does not answer"))
        )
        assert (await pipeline.flush(PATIENCE, final=True, succeeded=True)).durable
        assert confirmations(rig)
