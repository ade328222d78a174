from concurrent.futures import ThreadPoolExecutor

import pytest

from podferry.contract.errors import Changed, Corrupt, Unavailable
from podferry.contract.manifest import Entry
from podferry.contract.uri import parse_uri
from podferry.sidecar.archive.archive_reader import ArchiveReader
from podferry.sidecar.archive.member_writer import MemberReceiver
from podferry.sidecar.archive.unpack_rules import Archive, SpaceBudget, kind_of
from podferry.sidecar.staging.volume_capacity import UNLIMITED, Capacity
from podferry.storage.memory.faults import Content, Fault
from podferry.storage.memory.store import MemoryStore
from tests.support.archive_site import ENDINGS, SETTINGS, TREE, archive_of


class Kept(MemberReceiver):
    """Keeps the members in a dictionary."""

    def __init__(self, archive):
        super().__init__(archive, SpaceBudget(Capacity(volume_bytes=UNLIMITED)))
        self.files = {}

    def write(self, name, size, read):
        self.files[name] = b"".join(self.pieces(name, size, read))


@pytest.fixture
def reading(quick_retries):
    content, arrived = Content(), []

    async def read(ending, data, tag=None):
        content.objects[f"d/x{ending}"] = data
        store = MemoryStore(parse_uri("memory://reader/d"), content)
        entry = await store.stat(f"x{ending}")
        entry = entry if tag is None else Entry(entry.name, entry.size, tag)
        kept = Kept(Archive(entry, kind_of(entry.name)))
        with ThreadPoolExecutor(1) as threads:
            reader = ArchiveReader(store, SETTINGS, lambda files, count: arrived.append((files, count)))
            await reader.read(kept, threads)
        return kept.files

    read.content, read.arrived = content, arrived
    return read


@pytest.mark.parametrize("ending", ENDINGS)
async def test_members_reach_the_receiver(reading, ending):
    data = archive_of(ending, TREE)
    assert await reading(ending, data) == TREE
    assert [sum(column) for column in zip(*reading.arrived, strict=True)] == [0, len(data)]


async def test_errors_of_archive_and_store_reach_the_caller(reading):
    data = archive_of(".tar", TREE)
    with pytest.raises(Corrupt, match="not a complete"):
        await reading(".tar", data[:600])
    with pytest.raises(Changed):
        await reading(".tar", data, "other")
    reading.content.faults.append(Fault("read", times=99, error=Unavailable.of("gone")))
    with pytest.raises(Unavailable):
        await reading(".tar", data)
