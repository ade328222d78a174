from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime

import pytest
import stamina
import xxhash

from podferry.contract.destination.commit import FORMAT, Commit, CommittedFile
from podferry.contract.errors import Changed, PermanentError, Refused, TemporaryError, Unavailable
from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.restore import exporter as exporting
from podferry.sidecar.checkpoint.restore.exporter import Exporter
from podferry.storage.memory.store import Content, Fault, MemoryStore
from tests.support.patience import PATIENCE

LOST = Unavailable.of("the connection was reset")


class Site:
    """A commit with a file in an older folder, and an empty target in another store."""

    def __init__(self, sizes):
        self.source = MemoryStore(parse_uri("memory://from/base"), Content())
        self.target = MemoryStore(parse_uri("memory://to/models"), Content())
        self.data = {name: os.urandom(size) for name, size in sizes.items()}
        files = []
        for number, (name, data) in enumerate(sorted(self.data.items())):
            place = f"e-{1 if number == 0 else 2}-aa/{name}"
            self.source.content.objects[f"base/run/{place}"] = data
            files.append(CommittedFile(name, place, len(data), xxhash.xxh3_128_hexdigest(data)))
        when = datetime(2026, 1, 1, tzinfo=UTC)
        self.commit = Commit(FORMAT, 2, "run", "e-2-aa", "e-2", 2, when, tuple(files), "w")
        self.progress = []

    async def export(self, server_copy=None):
        source, target = LineageStore(self.source, "run"), LineageStore(self.target, "release")
        exporter = Exporter(source, target, server_copy, lambda *done: self.progress.append(done))
        with stamina.set_testing(True, attempts=3, cap=True):
            return await exporter.export(self.commit)

    @property
    def exported(self):
        objects = self.target.content.objects
        return {name.removeprefix("models/release/"): data for name, data in objects.items()}

    def writes(self):
        return [name for call, name in self.target.content.calls if call == "write"]


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setattr(exporting, "SETTINGS", exporting.PrefetchSettings(range_bytes=1000))
    return Site({"a": 10, "b/c": 0, "d": 12_345})


@pytest.fixture
def one_store(site):
    """The target is in the source's store, which can copy."""
    site.target = MemoryStore(parse_uri("memory://from/models"), site.source.content)
    return MemoryStore(parse_uri("memory://from"), site.source.content).server_copy


async def test_every_file_gets_its_own_name(site):
    result = await site.export()
    assert site.exported == site.data
    assert (sorted(result.sent), result.copied, result.kept) == (["a", "b/c", "d"], [], [])
    assert site.progress[-1] == (12_355, 12_355)


async def test_a_second_export_keeps_everything(site):
    await site.export()
    writes = site.writes()
    result = await site.export()
    assert (result.kept, result.sent) == (["a", "b/c", "d"], [])
    assert site.writes() == writes


async def test_what_failed_is_reported_at_once_and_continued(site):
    for name in ("*/a", "*/d"):
        site.source.faults.append(Fault("read", name, times=99, error=LOST))
    with pytest.raises(TemporaryError) as caught:
        await site.export()
    assert len(caught.value.problems) == 2
    assert site.exported == {"b/c": b""}
    site.source.faults.clear()
    assert (await site.export()).kept == ["b/c"]
    assert site.exported == site.data


async def test_a_temporary_failure_is_tried_again(site):
    site.source.faults.append(Fault("read", "*/d", skip=5, error=LOST))
    site.target.faults.append(Fault("write", "*/d", error=LOST, after=True))
    await site.export()
    assert site.exported == site.data
    assert site.progress[-1] == (12_355, 12_355)


@pytest.mark.parametrize("name", ["a", "d"])
async def test_damaged_bytes_are_never_written(site, name):
    file = next(one for one in site.commit.files if one.name == name)
    site.source.content.objects[f"base/run/{file.object}"] = bytes(file.size)
    with pytest.raises(PermanentError, match=f"{name} is damaged .*the commit says {file.xxh128}"):
        await site.export()
    assert name not in site.exported
    assert len(site.exported) == 2


async def test_missing_objects_and_other_content_are_refused_together(site):
    for file in site.commit.files[:2]:
        del site.source.content.objects[f"base/run/{file.object}"]
    site.target.content.objects |= {f"models/release/{number}": b"mine" for number in range(9)}
    site.target.content.objects["models/release/d"] = bytes(12_345)
    before = dict(site.target.content.objects)
    with pytest.raises(Refused) as caught:
        await site.export()
    assert [problem.what.rpartition("/")[2] for problem in caught.value.problems] == [
        "a is missing",
        "c is missing",
        "release has other content",
        "d is there already, with other bytes",
    ]
    assert caught.value.problems[2].measured == "0, 1, 2, 3, 4 and 4 more"
    assert site.target.content.objects == before


async def test_a_store_copies_within_itself(site, one_store):
    result = await site.export(one_store)
    assert (sorted(result.copied), result.sent) == (["a", "b/c", "d"], [])
    objects = site.source.content.objects
    assert {name: objects[f"models/release/{name}"] for name in site.data} == site.data
    assert site.writes() == []


async def test_large_files_are_sent_if_the_store_cannot_copy_them(site, one_store):
    one_store.max_bytes = 10
    result = await site.export(one_store)
    assert (sorted(result.copied), result.sent) == (["a", "b/c"], ["d"])


async def test_what_another_removes_meanwhile_is_noticed(site):
    gone = asyncio.Event()
    site.target.faults.append(Fault("entries", skip=1, wait=gone))
    export = asyncio.create_task(site.export())
    await until(lambda: len(site.exported) == 3)
    del site.target.content.objects["models/release/a"]
    gone.set()
    with pytest.raises(Changed, match=r"release/a is not there.*Run the same command again"):
        await export


async def test_few_ranges_are_in_flight(monkeypatch):
    monkeypatch.setattr(exporting, "SETTINGS", exporting.PrefetchSettings(range_bytes=1000))
    monkeypatch.setattr(exporting, "BUFFER_BYTES", 8000)
    site = Site({f"f{number}": 20_000 for number in range(8)})
    reading, most = set(), []
    real = site.source.read

    async def read(name, start=0, *rest):
        reading.add((name, start))
        most.append(len(reading))
        try:
            return await real(name, start, *rest)
        finally:
            reading.discard((name, start))

    monkeypatch.setattr(site.source, "read", read)
    await site.export()
    assert site.exported == site.data
    assert max(most) <= 8


async def test_a_cancelled_export_leaves_no_part_of_a_file(site):
    hold = asyncio.Event()
    site.source.faults.append(Fault("read", "*/d", skip=4, wait=hold))
    export = asyncio.create_task(site.export())
    await until(lambda: len(site.exported) == 2)
    export.cancel()
    await asyncio.sleep(0)
    hold.set()
    with pytest.raises(asyncio.CancelledError):
        await export
    assert "d" not in site.exported


async def until(condition):
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - the store has no event for it
            await asyncio.sleep(0.01)
