"""The order in which one scan accepts candidates."""

from __future__ import annotations

import pickle

from tests.support.detector_bench import Bench

WHOLE = pickle.dumps(1)


async def test_a_sure_save_waits_for_an_older_doubtful_one_of_another_series(tmp_path):
    bench = Bench(tmp_path, one_life=True)
    bench.write("weights/a.raw")
    bench.write("ckpt-1.pkl", WHOLE)
    await bench.scan("weights/a.raw", "ckpt-1.pkl")
    assert await bench.scan(after=1) == []
    assert bench.detector.not_ready["ckpt-1"].what == "ckpt-1 waits for weights, which is older"
    assert await bench.scan(after=4) == ["weights", "ckpt-1"]


async def test_an_incomplete_one_holds_back_nothing(tmp_path):
    bench = Bench(tmp_path)
    bench.write("torn.json", b"{")
    bench.write("ckpt-1.pkl", WHOLE)
    await bench.scan("torn.json", "ckpt-1.pkl")
    assert await bench.scan(after=1) == ["ckpt-1"]
    assert list(bench.detector.not_ready) == ["torn"]


async def test_what_waited_for_a_save_that_is_proven_is_accepted_before_newer_ones(tmp_path):
    bench = Bench(tmp_path, one_life=True)
    names = [f"{name}_{number}.pkl" for number in (1, 2, 3) for name in ("actor", "critic", "best_replay")]
    for name in names[:3]:
        bench.write(name, WHOLE)
    await bench.scan(*names[:3])
    assert await bench.scan(after=1) == []
    for later in (names[3:6], names[6:]):
        for name in later:
            bench.write(name, WHOLE)
        await bench.scan(*later)
        found = await bench.scan(after=1)
    assert found == [f"{name}_{number}" for number in (1, 2, 3) for name in ("actor", "best_replay")]


async def test_a_proof_lets_none_overtake_an_older_one_that_still_waits(tmp_path):
    bench = Bench(tmp_path, one_life=True)
    bench.write("weights/a.raw")
    bench.write("step-1.raw")
    await bench.scan("weights/a.raw", "step-1.raw")
    bench.write("step-2.raw")
    await bench.scan("step-2.raw", after=1)
    bench.write("step-3.raw")
    await bench.scan("step-3.raw", after=1)
    assert await bench.scan(after=1) == []
    assert await bench.scan(after=2) == ["weights", "step-1", "step-2", "step-3"]
