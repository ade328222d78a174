"""Checkpoints that are renamed when the next save begins."""

from __future__ import annotations

import pytest

from tests.support.detector_bench import LONG, SHORT, save

SIZE = 100_000


def put_away(root, name, to):
    """Rename it, at a time that differs from its last write by the file system's clock."""
    path = root / name
    while True:
        path.rename(root / to)
        written = max(one.stat().st_mtime_ns for one in (root / to, *(root / to).glob("*")))
        if root.stat().st_mtime_ns >= (root / to).stat().st_ctime_ns > written:
            return
        (root / to).rename(path)


async def rotate(bench, *names, sizes, pause=LONG):
    """A save that begins with a rotation, like all before it; `names` are those of its files in `last`."""
    if (bench.root / "last").exists():
        put_away(bench.root, "last", "prev")
    return await save(bench, *(f"last/{name}.raw" for name in names), data=bytes(sizes), pause=pause)


async def test_a_rename_of_a_doubtful_file_proves_nothing(one_life):
    await save(one_life, "last.raw", data=bytes(SIZE), pause=LONG)
    (one_life.root / "last.raw").unlink()
    await save(one_life, "last.raw", data=bytes(SIZE // 2), pause=LONG)
    assert one_life.doubts["last"] == {"smaller", "unproven"}
    put_away(one_life.root, "last.raw", "prev.raw")
    await one_life.scan("prev.raw")
    assert await one_life.scan(after=LONG) == ["prev"]
    assert one_life.doubts["prev"] == {"smaller", "unproven"}


async def test_a_rename_of_a_doubtful_directory_proves_nothing(one_life):
    await rotate(one_life, "model", "optimizer", sizes=SIZE)
    await rotate(one_life, "model", "optimizer", sizes=SIZE)
    (one_life.root / "prev").rename(one_life.root.parent / "removed")
    await rotate(one_life, "model", sizes=SIZE)
    assert one_life.doubts == {"last": {"fewer"}, "prev": set()}
    put_away(one_life.root, "last", "last.corrupt")
    await one_life.scan()
    await one_life.scan(after=LONG)
    assert one_life.doubts["last.corrupt"] == {"fewer"}


async def test_what_was_proven_under_its_former_name_is_sure_at_once(one_life):
    for number in (1, 2):
        await save(one_life, f"step-{number}.raw", data=bytes(SIZE), pause=LONG)
    assert one_life.doubts["step-2"] == set()
    put_away(one_life.root, "step-2.raw", "best.raw")
    await one_life.scan("best.raw")
    assert await one_life.scan(after=SHORT) == ["best"]
    assert one_life.doubts["best"] == set()


async def test_a_later_save_proves_the_one_before_under_both_names(one_life):
    await save(one_life, "last.raw", data=bytes(SIZE), pause=LONG)
    put_away(one_life.root, "last.raw", "prev.raw")
    await one_life.scan("prev.raw")
    await one_life.scan(after=LONG)
    assert one_life.doubts == {"last": {"unproven"}, "prev": {"unproven"}}
    await save(one_life, "last.raw", data=bytes(SIZE), pause=LONG)
    assert one_life.doubts["last"] == set()
    assert sorted(one_life.proven) == ["last", "prev"]


@pytest.mark.parametrize("known", [True, False])
async def test_a_rename_from_a_known_name_proves_nothing_even_soon(one_life, known):
    """The next save begins before the long pause of a torn one is over."""
    if known:
        for number in (1, 2):
            await save(one_life, f"step-{number}.raw", data=bytes(SIZE), pause=LONG)
    one_life.write("step-3.raw", bytes(SIZE // 2))
    await one_life.scan("step-3.raw")
    put_away(one_life.root, "step-3.raw", "ckpt-3.raw")
    await one_life.scan("ckpt-3.raw")
    await one_life.scan(after=LONG)
    assert one_life.doubts["ckpt-3"] == ({"unproven"} if known else set())


async def test_the_same_for_a_directory(one_life):
    for number in (1, 2):
        await save(one_life, f"step-{number}/a.raw", f"step-{number}/b.raw", pause=LONG)
    one_life.write("step-3/a.raw")
    await one_life.scan("step-3/a.raw")
    put_away(one_life.root, "step-3", "failed")
    await one_life.scan()
    await one_life.scan(after=LONG)
    assert one_life.doubts["failed"] == {"unproven"}
