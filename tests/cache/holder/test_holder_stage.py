import asyncio

import msgspec
import pytest
import stamina

from podferry.cache.holder import content_checksums
from podferry.contract.cache_api import Filling, HeldDataset
from podferry.contract.errors import Changed, EmptyDataset, NotFound, Unavailable
from podferry.storage.checksum.checksums import crc64
from podferry.storage.memory.store import Fault
from tests.support.dataset_site import held
from tests.support.holder_site import holder_stage

FILES = {"a/1": b"one", "a/2": b"two", "b": b""}


async def test_it_is_complete_when_everything_is_fetched_and_recorded(content, tmp_path):
    stage = holder_stage(content.uri, tmp_path / "held")
    assert (stage.complete, stage.filling) == (None, Filling())
    await stage.fill()
    document = stage.complete.document
    assert msgspec.json.decode(stage.complete.body, type=HeldDataset) == document
    assert held(stage.root) == FILES
    assert (document.manifest.files, len(document.checksums)) == (3, 3)
    assert set(stage.complete.entries) == set(FILES)
    assert stage.filling == Filling(6, 6)
    await stage.close()


async def test_files_that_were_just_fetched_are_not_read_again(content, tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr(content_checksums, "file_checksum", lambda path: read.append(path.name) or 0)
    stage = holder_stage(content.uri, tmp_path / "held")
    await stage.fill()
    assert read == []
    assert stage.complete.document.checksums == tuple(map(crc64, (b"one", b"two", b"")))
    await stage.close()


async def test_a_reader_that_waits_sees_the_end(content, tmp_path):
    stage = holder_stage(content.uri, tmp_path / "held")
    waiting = asyncio.create_task(stage.wait(600))
    await stage.fill()
    await waiting
    await stage.wait(600)
    await stage.close()


async def test_a_wait_ends(content, tmp_path):
    stage = holder_stage(content.uri, tmp_path / "held")
    await stage.wait(0.01)
    assert stage.complete is None


async def test_an_outage_is_survived(content, tmp_path):
    content.faults.append(Fault("entries", error=Unavailable.of("gone"), times=3))
    stage = holder_stage(content.uri, tmp_path / "held")
    with stamina.set_testing(True, attempts=10):
        await stage.fill()
    assert stage.complete is not None
    await stage.close()


@pytest.mark.parametrize("error", [Changed.of("412"), NotFound.of("404")])
async def test_a_source_that_changes_during_the_first_fill_is_listed_again(content, tmp_path, error):
    content.faults.append(Fault("read", "a/1", error=error, times=1))
    stage = holder_stage(content.uri, tmp_path / "held")
    with stamina.set_testing(True, attempts=10):
        await stage.fill()
    assert held(stage.root) == FILES
    await stage.close()


async def test_a_dataset_that_is_missing_is_a_failure(content, tmp_path):
    content.objects.clear()
    stage = holder_stage(content.uri, tmp_path / "held")
    with pytest.raises(EmptyDataset):
        await stage.fill()
    await stage.wait(600)
    assert isinstance(stage.failure, EmptyDataset)
    assert stage.complete is None


async def test_the_next_holder_adopts_the_files_and_fetches_damaged_ones_again(content, tmp_path):
    first = holder_stage(content.uri, tmp_path / "held")
    await first.fill()
    await first.close()
    (tmp_path / "held" / "a/1").write_bytes(b"0ne")
    content.calls.clear()
    second = holder_stage(content.uri, tmp_path / "held")
    await second.fill()
    assert [name for call, name in content.calls if call == "read"] == ["a/1"]
    assert held(second.root) == FILES
    assert second.complete.document.checksums == first.complete.document.checksums
    await second.close()
