from __future__ import annotations

import asyncio

import pytest

from podferry.contract.errors import Corrupt
from podferry.contract.manifest import Entry, freeze
from podferry.sidecar.fetch.multirange_file import RangedFile
from podferry.sidecar.fetch.partial_file import PartialFile, WrittenRange
from podferry.storage.checksum.checksums import ChecksumKind, checksum_of
from tests.support.object_server import Rig
from tests.support.patience import PATIENCE


@pytest.mark.parametrize("name", ["d/small-7", "large"])
async def test_what_never_matches_its_checksum_is_named(stage, port, objects, name):
    objects.damaged = {(name, 0): 99}
    rig = Rig(stage, port)
    rig.fallback.damaged = True
    with pytest.raises(Corrupt, match=f"{name} is damaged.*does not have its checksum.*found crc64nvme"):
        await rig.prefetch().run()
    assert name not in rig.held()


RANGE = 100
DATA = bytes(range(250)) * 2


async def test_a_hash_is_computed_while_ranges_are_missing(stage):
    entry = Entry("d/large", len(DATA), '"tag"')
    stage.claim(freeze("s3://b/x", [entry]))
    partial = PartialFile(stage, entry, RANGE)
    file = RangedFile(partial, stage, checksum_of(ChecksumKind.MD5, DATA))
    hashed = asyncio.Event()
    checksums = file._checksums
    hash_ahead = checksums.hash_ahead

    def watched():
        found = hash_ahead()
        if checksums._hash.position == len(DATA) - RANGE:
            loop.call_soon_threadsafe(hashed.set)
        return found

    loop = asyncio.get_running_loop()
    checksums.hash_ahead = watched
    for start in range(0, len(DATA), RANGE):
        data = memoryview(DATA[start : start + RANGE])
        if start == len(DATA) - RANGE:
            await asyncio.wait_for(hashed.wait(), PATIENCE)
        stage.write(partial.path, data, start)
        complete = file.add(file.written_range(start, data))
    assert complete
    assert not file.matches(), "a hash is compared in a thread"
    await file.repair(None)


async def test_a_file_is_not_read_to_compare_it_on_the_event_loop(stage):
    entry = Entry("d/large", len(DATA), '"tag"')
    stage.claim(freeze("s3://b/x", [entry]))
    partial = PartialFile(stage, entry, RANGE)
    for start in range(0, len(DATA), RANGE):
        data = memoryview(DATA[start : start + RANGE])
        stage.write(partial.path, data, start)
        partial.record(WrittenRange(start, len(data)))
    file = RangedFile(partial, stage, checksum_of(ChecksumKind.CRC64NVME, DATA))
    assert not file.matches(), "the checksums of its ranges are not known"
    await file.repair(None)
