from __future__ import annotations

import os

from podferry.sidecar.checkpoint.detect.directory_scan import scan_directory
from podferry.sidecar.checkpoint.detect.pointer_files import POINTER_BYTES


async def test_each_checkpoint_keeps_the_pointer_that_named_it(bench):
    for number in range(1, 5):
        bench.write(f"epoch-{number}.bin")
        bench.write("latest", b"epoch-%d" % number)
        os.utime(bench.root / f"epoch-{number}.bin", ns=(0, 2 * number))
        os.utime(bench.root / "latest", ns=(0, 2 * number + 1))
        found = await bench.scan(f"epoch-{number}.bin", "latest", after=0.7)
        assert found == ([f"epoch-{number - 2}"] if number > 2 else [])
        for name in found:
            assert bench.detector.pointer_texts(bench.settled[name]) == {"latest": name.encode()}
    (bench.root / "latest").unlink()
    assert await bench.scan(after=60) == ["epoch-3", "epoch-4"]
    assert bench.detector.pointer_texts(bench.settled["epoch-3"]) == {}
    assert await bench.scan(after=60) == []


async def test_a_pointer_without_an_observed_close_is_read_at_the_next_scan(bench):
    bench.write("a.bin")
    bench.write("latest", b"a")
    await bench.scan()
    assert bench.detector._pointers.pointers == {"a": {}}
    await bench.scan(after=0.5)
    assert bench.detector._pointers.pointers["a"]["latest"].text == b"a"


async def test_a_pointer_that_changes_during_a_scan_is_not_read(bench, monkeypatch):
    bench.write("a.bin")
    bench.write("latest", b"a")

    def and_move(root):
        found = scan_directory(root)
        bench.write("latest", b"a is no longer it")
        return found

    monkeypatch.setattr("podferry.sidecar.checkpoint.detect.detector.scan_directory", and_move)
    await bench.scan("latest")
    assert bench.detector._pointers.pointers == {"a": {}}


async def test_a_large_file_with_the_name_of_a_pointer_is_data(bench):
    bench.write("a.bin")
    bench.write("latest", b"a")
    await bench.scan()
    bench.write("latest", b"a" * (POINTER_BYTES + 1))
    assert await bench.scan(after=60) == ["a"]
    assert await bench.scan(after=60) == ["latest"]
