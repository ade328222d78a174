import pytest

from podferry.contract.dataset_reference import parse_reference
from podferry.contract.errors import AccessDenied, BucketNotFound, Changed, Corrupt, NotFound
from podferry.contract.uri import parse_uri
from podferry.sidecar.sync.comparison import SyncOptions, compare
from podferry.sidecar.sync.transfer import Transfer
from podferry.storage.memory.faults import Fault
from podferry.storage.memory.store import MemoryStore
from podferry.storage.store import StoreConfig
from tests.support.sync_site import SETTINGS


@pytest.fixture
def transfer(site):
    """A transfer of three files that was run, and what it reported."""

    async def run():
        site.put(a=b"1", b=b"2" * 2500, c=b"3")
        target, options = MemoryStore(parse_uri(site.target_uri)), SyncOptions(settings=SETTINGS)
        found = await compare(parse_reference(site.source_uri), target, StoreConfig(), options)
        site.reported = []
        made = Transfer(found, SETTINGS, lambda done, total: site.reported.append((done, total)))
        await made.run()
        return made

    return run


async def test_everything_is_moved_reported_and_recorded(site, transfer):
    done = await transfer()
    assert (sorted(done.moved), done.bytes, done.problems(), done.changed) == (
        ["a", "b", "c"],
        2502,
        (),
        False,
    )
    assert site.reported[0] == (0, 2502)
    assert site.reported[-1] == (2502, 2502)
    assert {file.name for file in done.files} == {"a", "b", "c"}
    assert len(site.records()) == 1


@pytest.mark.parametrize(("error", "changed"), [(Changed, True), (NotFound, True), (Corrupt, False)])
async def test_an_error_of_one_file_leaves_the_others(site, transfer, error, changed):
    site.source.faults.append(Fault("read", "b*", times=99, error=error.of("this one")))
    done = await transfer()
    assert (sorted(done.moved), done.changed) == (["a", "c"], changed)
    assert [problem.what for problem in done.problems()] == ["this one"]


@pytest.mark.parametrize("error", [AccessDenied, BucketNotFound])
async def test_an_error_of_the_store_ends_it_and_what_was_moved_is_recorded(
    site, transfer, error, monkeypatch
):
    monkeypatch.setattr("podferry.sidecar.sync.transfer.CONCURRENT_FILES", 1)
    site.target.faults.append(Fault("write", "c", times=99, error=error.of("the store")))
    with pytest.raises(error):
        await transfer()
    assert len(site.records()) == 1
