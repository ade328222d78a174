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
