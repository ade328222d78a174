import pytest

from podferry.contract.dataset_reference import parse_reference
from podferry.contract.destination.sync_record import SyncedFile
from podferry.contract.errors import Changed
from podferry.contract.pack import INDEX
from podferry.contract.uri import parse_uri
from podferry.sidecar.dataset.selection import Selection
from podferry.sidecar.pack.builder import PackBuilder
from podferry.sidecar.sync.comparison import SyncOptions, compare
from podferry.sidecar.sync.plan import Reason, Removal
from podferry.storage.listing.dataset import open_dataset
from podferry.storage.memory.store import MemoryStore
from podferry.storage.store import StoreConfig


@pytest.fixture
def comparing(site):
    async def run(source=None, **options):
        target = MemoryStore(parse_uri(site.target_uri))
        return await compare(
            parse_reference(source or site.source_uri), target, StoreConfig(), SyncOptions(**options)
        )

    return run


async def test_what_is_equal_differs_or_is_missing(site, comparing):
    site.put(a=b"1", b=b"2", c=b"3")
    site.target.objects |= {"copy/a": b"1", "copy/b": b"22", "copy/extra": b"x"}
    found = await comparing()
    assert {move.entry.name: move.reason for move in found.plan.moves} == {"b": Reason.SIZE, "c": Reason.NEW}
    (proof,) = found.proven(()).files
    assert proof == SyncedFile("a", 1, found.there["a"].tag, found.there["a"].tag)
    removals = found.removals({}, Selection())
    assert removals == (Removal("extra", "extra"),)
    await found.check_gone(removals, 1)
    site.put(extra=b"it was not listed")
    with pytest.raises(Changed, match="leaves out files"):
        await found.check_gone(removals, 1)


async def test_the_index_of_a_pack_is_not_unpacked(site, comparing):
    site.put(a=b"1", b=b"2")
    dataset = await open_dataset(parse_uri(site.source_uri), StoreConfig())
    packed = MemoryStore(parse_uri(f"{site.source_uri[:-1]}packed"), site.source)
    await PackBuilder(dataset, packed, 1 << 20).run()
    whole = await comparing(str(packed.uri))
    assert INDEX in {move.entry.name for move in whole.plan.moves}
    unpacked = await comparing(str(packed.uri), unpack=True)
    assert (unpacked.plan.moves, len(unpacked.plan.unpacks)) == ((), 1)
