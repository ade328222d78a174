import pytest

from podferry.contract.errors import Changed, NotFound, Unavailable
from podferry.contract.manifest import Entry
from podferry.contract.uri import parse_uri
from podferry.sidecar.sync.file_mover import FileMover
from podferry.storage.memory.faults import Fault
from podferry.storage.memory.store import MemoryStore
from tests.support.sync_site import SETTINGS

LARGE = b"0123456789" * 550


@pytest.fixture
def moving(site):
    """Moves the file `a` with this content, if any; the sum of the bytes reported."""
    site.arrived = 0

    def add(count):
        site.arrived += count

    source, target = (MemoryStore(parse_uri(uri)) for uri in (site.source_uri, site.target_uri))
    mover = FileMover(source, target, SETTINGS, add)

    async def move(data, tag=None):
        site.put(a=data)
        entry = await source.stat("a")
        return await mover.move(entry if tag is None else Entry("a", entry.size, tag))

    return move


@pytest.mark.parametrize("data", [b"", b"small", LARGE])
async def test_a_file_arrives_whole(site, moving, data):
    found = await moving(data)
    assert (site.held(), site.arrived, found.size) == ({"a": data}, len(data), len(data))


@pytest.mark.parametrize("data", [b"small", LARGE])
async def test_another_version_than_the_listed_one_is_not_written(site, moving, data):
    with pytest.raises(Changed):
        await moving(data, "other")
    assert site.held() == {}
    assert site.arrived == 0


@pytest.mark.parametrize("data", [b"small", LARGE])
@pytest.mark.parametrize("side", ["source", "target"])
async def test_a_store_that_fails_once_is_asked_again(site, moving, data, side):
    getattr(site, side).faults.append(
        Fault("read" if side == "source" else "write", error=Unavailable.of("x"))
    )
    await moving(data)
    assert (site.held(), site.arrived) == ({"a": data}, len(data))


@pytest.mark.parametrize("data", [b"small", LARGE])
async def test_a_write_that_never_succeeds_leaves_nothing(site, moving, data):
    site.target.faults.append(Fault("write", times=99, error=Unavailable.of("x")))
    with pytest.raises(Unavailable):
        await moving(data)
    assert (site.held(), site.arrived) == ({}, 0)


async def test_somebody_elses_write_or_removal_is_noticed(site, moving):
    site.target.faults.append(Fault("stat", error=NotFound.of("gone")))
    with pytest.raises(NotFound):
        await moving(b"small")

    class Foreign(MemoryStore):
        async def stat(self, name):
            return Entry(name, 1, "x")

    target = Foreign(parse_uri(site.target_uri))
    mover = FileMover(MemoryStore(parse_uri(site.source_uri)), target, SETTINGS, lambda _: None)
    with pytest.raises(Changed, match="is not what was written"):
        await mover.move(Entry("a", 5))
