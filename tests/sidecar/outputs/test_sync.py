from __future__ import annotations

import asyncio
import gc

from podferry.contract.errors import AccessDenied, Unavailable
from podferry.sidecar.outputs import scan as scan_module
from podferry.storage.memory.store import Fault
from tests.support.output_site import DURABLE, end, until
from tests.support.patience import PATIENCE


async def test_only_what_changed_is_sent_again_and_nothing_is_deleted(site):
    site.write("kept", b"1")
    changed, removed = site.write("changed", b"2"), site.write("removed", b"3")
    job = site.job()
    await job.flush(PATIENCE)
    first = len(site.writes())
    assert first == 3
    changed.write_bytes(b"22")
    removed.unlink()
    await job.flush(PATIENCE)
    assert site.writes()[first:] == ["changed"]
    assert site.uploaded() == {"kept": b"1", "changed": b"22", "removed": b"3"}
    assert site.state.status.outputs.files == 2


async def test_a_file_that_may_have_changed_within_a_tick_is_sent_once_more(site):
    site.write("fresh", b"1", age=-60)
    job = site.job()
    await job.flush(PATIENCE)
    await job.flush(PATIENCE)
    assert site.writes() == ["fresh", "fresh"]


async def test_a_temporary_failure_is_retried(site):
    site.write("log", b"1")
    site.content.faults.append(Fault("write", "log", error=Unavailable.of("503"), times=2))
    assert await site.job().finish(end()) == DURABLE
    assert site.uploaded() == {"log": b"1"}


async def test_a_failure_keeps_no_bytes(site):
    """Thousands of files may fail: their bytes must be freed without a run of the garbage collector."""
    site.write("a", b"1")
    site.content.faults.append(Fault("write", "a", error=AccessDenied.of("the store refuses"), times=99))
    job = site.job()
    await job.flush(PATIENCE)
    kept = job._sync.last.failed["a"]
    assert not any(isinstance(one, BaseException) for one in gc.get_referents(*gc.get_referents(kept), kept))


async def test_a_write_whose_answer_is_lost_is_sent_again(site):
    site.write("a", b"1")
    site.content.faults.append(Fault("write", "a", error=Unavailable.of("reset"), after=True))
    assert await site.job().finish(end()) == DURABLE
    assert site.writes() == ["a", "a"]


async def test_files_that_vanish_are_no_failure(site):
    gate = asyncio.Event()
    names = [f"{number}" for number in range(20)]
    for name in names:
        site.write(name, b"1")
    site.content.faults.append(Fault("write", "[0-9]*", wait=gate, times=4))
    task = asyncio.create_task(site.job().finish(end()))
    await until(lambda: len(site.writes()) == 4)
    for name in set(names) - set(site.writes()):
        (site.root / name).unlink()
    gate.set()
    assert await task == DURABLE
    assert len(site.uploaded()) == site.state.status.outputs.files == 4


async def test_a_directory_that_vanishes_is_empty(site):
    site.root.rmdir()
    assert await site.job().finish(end()) == DURABLE


async def test_a_file_that_is_replaced_repeatedly_is_sent_once_it_is_stable(site, monkeypatch):
    """Only the fourth read finds the scanned file."""
    path = site.write("best.json", b"0")
    opened, real = [], scan_module.os.open

    def opening(name, flags):
        opened.append(name)
        if len(opened) < 4:
            other = path.with_name("other")
            other.write_bytes(str(len(opened)).encode())
            other.replace(path)
        return real(name, flags)

    monkeypatch.setattr(scan_module.os, "open", opening)
    assert await site.job().finish(end()) == DURABLE
    assert len(opened) == 4
    assert site.uploaded() == {"best.json": b"3"}


async def test_small_files_are_sent_first(site, monkeypatch):
    monkeypatch.setattr("podferry.sidecar.outputs.sync.CONCURRENT_FILES", 1)
    for size in (5, 1, 3):
        site.write(f"{size}", b"x" * size)
    await site.job().finish(end())
    assert site.writes() == ["1", "3", "5"]


async def test_large_files_are_sent_one_at_a_time(site, monkeypatch):
    monkeypatch.setattr("podferry.sidecar.outputs.sync.CHUNK_BYTES", 1)
    gate = asyncio.Event()
    for name in ("large-1", "large-2", "s"):
        site.write(name, name.encode() if name != "s" else b"s")
    site.content.faults.append(Fault("write", "large-*", wait=gate, times=2))
    task = asyncio.create_task(site.job().finish(end()))
    await until(lambda: len(site.writes()) == 2)
    for _ in range(10):
        await asyncio.sleep(0)
    assert sorted(site.writes()) == ["large-1", "s"]
    gate.set()
    assert await task == DURABLE
