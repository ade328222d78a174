"""Small files that are copied from a holder while the source is being listed."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from podferry.contract.errors import Unavailable
from podferry.contract.spec import DatasetSpec, Shard
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.dataset import listing_overlap
from podferry.sidecar.dataset.dataset_job import DatasetJob
from podferry.sidecar.dataset.dataset_placement import DatasetPlacement
from podferry.sidecar.staging.file_ops import PARTIAL_DIR
from podferry.sidecar.staging.volume_capacity import Capacity
from podferry.storage.memory.store import Fault
from tests.support.dataset_site import FILES, held, memory_dataset
from tests.support.holder_site import running_holder
from tests.support.output_site import until

SMALL = PrefetchSettings(range_bytes=1 << 20, processes=1)
SINGLE = b"o" * (1 << 19)
"""Too much for a bundle."""
LARGE = bytes(range(256)) * 4 * 4096


class Site:
    """A holder that has the dataset, and a pod.

    Attributes:
        stage: The holder's.
        root: Where the pod's files are.
        made: The pod's jobs.
    """

    def __init__(self, content, stage, holder, root):
        self.content, self.stage, self._holder, self.root, self.made = content, stage, holder, root, []

    def job(self, **settings):
        spec = DatasetSpec(str(self.content.uri), str(self.root), **settings)
        placement = DatasetPlacement(self.root, self.root.with_name("claim"), holder=self._holder)
        self.made.append(DatasetJob(spec, placement, SMALL))
        return self.made[-1]

    @asynccontextmanager
    async def listing(self, job):
        """The source's list waits until the block ends. The task of the plan."""
        proceed = asyncio.Event()
        self.content.faults.append(Fault("entries", wait=proceed))
        planning = asyncio.create_task(job.plan())
        yield planning
        proceed.set()
        await planning

    @asynccontextmanager
    async def fetching(self, job):
        """The same, and then the dataset is fetched."""
        async with self.listing(job) as planning:
            yield
        await planning.result().fetch(log_progress=False)

    async def copied(self, *files):
        """Waits until these have arrived, under whatever names."""
        await until(lambda: set(files) <= set(held(self.root).values()))
        assert all(name.startswith(PARTIAL_DIR) for name in held(self.root))

    @property
    def expected(self):
        return {name.removeprefix("d/"): data for name, data in self.content.objects.items()}

    @property
    def read(self):
        """What was read from the source."""
        return sorted({name for call, name in self.content.calls if call == "read"})


@pytest.fixture
def content():
    with memory_dataset(FILES) as made:
        yield made


@pytest.fixture
async def site(content, tmp_path, monkeypatch):
    monkeypatch.setattr(listing_overlap, "ENTRIES_PER_PAGE", 2)
    content.objects |= {"d/large": LARGE, "d/single": SINGLE}
    (tmp_path / "stage").mkdir()
    async with running_holder(content.uri, tmp_path / "held") as (stage, holder):
        while stage.complete is None:
            await stage.wait(0.01)
        content.calls.clear()
        site = Site(content, stage, holder, tmp_path / "stage")
        yield site
        for one in site.made:
            await one.close()


async def test_files_arrive_before_the_list(site):
    job = site.job()
    async with site.fetching(job):
        await site.copied(b"one", b"two", SINGLE)
        assert LARGE not in held(site.root).values()
    assert held(site.root) == site.expected
    assert site.read == []
    assert (job.status.files_done, job.status.files_kept) == (len(site.expected), 0)


async def test_what_has_changed_is_fetched_from_the_source(site):
    async with site.fetching(site.job()):
        await site.copied(b"one", b"two", SINGLE)
        site.content.objects |= {"d/a/1": b"1st", "d/new": b"new"}
        del site.content.objects["d/a/2"]
    assert held(site.root) == site.expected
    assert site.read == ["a/1", "new"]


async def test_damaged_files_are_not_taken(site):
    (site.stage.root / "a/1").write_bytes(b"0ne")
    async with site.fetching(site.job()):
        await site.copied(SINGLE)
    assert held(site.root) == site.expected
    assert site.read == ["a/1"]


async def test_only_the_selection_is_copied(site):
    async with site.fetching(site.job(include=("a/*",))):
        await site.copied(b"one", b"two")
        assert SINGLE not in held(site.root).values()
    assert held(site.root) == {"a/1": b"one", "a/2": b"two"}


async def test_a_source_that_does_not_respond_after_all(site):
    async with site.fetching(site.job()):
        await site.copied(b"one", b"two", SINGLE)
        site.content.faults.append(
            Fault("entries", error=Unavailable.of("the store does not respond"), times=99)
        )
    assert held(site.root) == site.expected


async def test_a_refused_dataset_leaves_nothing(site):
    job = site.job()
    async with site.listing(job):
        await site.copied(b"one", b"two", SINGLE)
    job.abandon()
    assert held(site.root) == {}


@pytest.mark.parametrize("settings", [{"shard": Shard(0, 2)}, {"size": 1 << 50}], ids=["part", "too large"])
async def test_nothing_is_copied_that_may_not_be_needed_or_fit(site, settings):
    async with site.listing(site.job(**settings)):
        await asyncio.sleep(0)
    assert held(site.root) == {}


async def test_nothing_is_copied_where_inodes_may_be_too_few(site, monkeypatch):
    """The check of the plan counts those that are free: it must find all of them."""
    few = Capacity(1 << 40, volume_files=2 * len(site.expected) - 1)
    monkeypatch.setattr(listing_overlap, "measure", lambda root: few)
    async with site.listing(site.job()):
        await asyncio.sleep(0)
    assert held(site.root) == {}


async def test_a_short_list_is_waited_for(site, monkeypatch):
    monkeypatch.setattr(listing_overlap, "ENTRIES_PER_PAGE", len(site.expected))
    async with site.listing(site.job()):
        await asyncio.sleep(0)
    assert held(site.root) == {}
