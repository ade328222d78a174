"""Small files that are downloaded during a long listing."""

import asyncio
import errno
import hashlib
import itertools

import msgspec
import pytest
from aiohttp import web

from podferry.contract.dataset_reference import Reference, reference_to
from podferry.contract.errors import Changed, Corrupt, Refused, Unavailable
from podferry.contract.manifest import Entry
from podferry.contract.spec import DatasetSpec, Shard, Unpack
from podferry.contract.tmpfs_cost import KERNEL_BYTES_PER_FILE
from podferry.contract.uri import parse_uri
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.dataset import dataset_job as dataset_module
from podferry.sidecar.dataset import listing_overlap as module
from podferry.sidecar.dataset.dataset_job import DatasetJob, DatasetPlacement
from podferry.sidecar.staging.file_ops import PARTIAL_DIR
from podferry.sidecar.staging.stage_writer import StageWriter
from podferry.sidecar.staging.staging_dir import OVERLAP_PREFIX, StagingDir
from podferry.sidecar.staging.volume_capacity import Capacity
from podferry.storage.listing import dataset as listing
from podferry.storage.listing.dataset import list_dataset
from podferry.storage.memory.store import CONTENTS, Content, MemoryStore
from tests.support.unsigned_requests import UnsignedRequestBuilder

COUNTER = itertools.count()
RANGE = 64 * 1024
SETTINGS = PrefetchSettings(in_flight=4, range_bytes=RANGE, buffer_bytes=1 << 20, processes=1)
SMALL = {f"d/{number:02}": bytes([number + 1]) * (100 + number) for number in range(20)}
OTHERS = {"d/empty": b"", "d/large": b"x" * (RANGE + 1), "e/last": b"last"}
FILES = SMALL | OTHERS
SIZE = 64 << 20


class Place:
    """A dataset on a server.

    Attributes:
        content: Its objects.
        uri: Its URI.
        requested: Names of the files that were requested.
        answering: Set while the server answers.
        pauses: Awaited by the listing before the entry of a name.
    """

    def __init__(self):
        name = f"ahead-{next(COUNTER)}"
        self.content = CONTENTS[name] = Content()
        self.content.objects.update({f"set/{key}": data for key, data in FILES.items()})
        self.uri = parse_uri(f"memory://{name}/set")
        self.requested, self.pauses, self.status = [], {}, 200
        self.answering = asyncio.Event()
        self.answering.set()
        self.changed, self.came = {}, asyncio.Condition()

    async def answer(self, request):
        name = request.match_info["name"]
        self.requested.append(name)
        body = self.content.objects[f"set/{name}"]
        tag = hashlib.sha256(body).hexdigest()[:32]  # as in `MemoryStore`
        async with self.came:
            self.came.notify_all()
        await self.answering.wait()
        return web.Response(body=body, status=self.status, headers={"ETag": f'"{tag}"'})

    async def until(self, *names):
        async with self.came:
            await asyncio.wait_for(self.came.wait_for(lambda: {*names} <= {*self.requested}), 5)

    def store(self, port):
        place = self

        class Listed(MemoryStore):
            request_builder = UnsignedRequestBuilder(port)

            async def entries(self, prefix=""):
                async for entry in super().entries(prefix):
                    for pause in place.pauses.get(entry.name, ()):
                        await pause()
                    for other in place.changed.get(entry.name, ()):
                        yield other
                    yield entry

        return Listed


@pytest.fixture
async def place(monkeypatch):
    made = Place()
    app = web.Application()
    app.router.add_get("/{name:.*}", made.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    store = made.store(runner.addresses[0][1])
    monkeypatch.setattr(listing, "open_store", lambda uri, config: store(uri))
    monkeypatch.setattr(module, "ENTRIES_PER_PAGE", 2)
    monkeypatch.setattr(module, "MIN_ENTRIES", 3)
    monkeypatch.setattr(module, "FAST_LISTING_RATE", float("inf"))
    yield made
    made.answering.set()
    await runner.cleanup()
    del CONTENTS[made.uri.bucket]


@pytest.fixture
async def job(place, tmp_path):
    """Successive jobs on one staging directory, as after restarts; each ends the previous one."""
    (tmp_path / "stage").mkdir()
    made = []

    async def making(alone=True, **settings):
        if made:
            await made[-1].close()
        settings = {"reference": str(place.uri), "size": SIZE} | settings
        spec = DatasetSpec(path=str(tmp_path / "stage"), **settings)
        where = DatasetPlacement(tmp_path / "stage", tmp_path / "claim", alone=alone)
        made.append(DatasetJob(spec, where, SETTINGS))
        return made[-1]

    yield making
    if made:
        await made[-1].close()


def held(root):
    found = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items()}


async def finished(planned, tmp_path):
    await planned.fetch(log_progress=False)
    assert held(tmp_path / "stage") == FILES
    status = planned.job.status
    assert (status.files_done, status.bytes_done) == (len(FILES), sum(map(len, FILES.values())))
    assert status.files_kept == 0


async def test_small_files_are_fetched_during_the_listing(place, job, tmp_path):
    place.pauses["e/last"] = [lambda: place.until(*SMALL)]
    one = await job()
    planned = await one.plan()
    assert sorted(place.requested) == sorted(SMALL), "each once, but neither the empty nor the large file"
    assert held(tmp_path / "stage") == SMALL
    await finished(planned, tmp_path)
    assert not set(place.requested[len(SMALL) :]) & set(SMALL)
    assert one.status.transfer.files == len(FILES)
    assert not (tmp_path / "stage" / PARTIAL_DIR).exists()


async def test_no_file_gets_its_name_before_the_listing_ends(place, job, tmp_path):
    seen = []

    async def look():
        await place.until(*SMALL)
        seen.extend(held(tmp_path / "stage"))

    place.pauses["e/last"] = [look]
    await (await job()).plan()
    assert seen
    assert all(name.startswith(f"{PARTIAL_DIR}/{OVERLAP_PREFIX}") for name in seen)


@pytest.mark.parametrize(
    "settings",
    [{"size": None}, {"shard": Shard(0, 2)}, {"unpack": Unpack.ALWAYS}, {"alone": False}],
    ids=["size unknown", "a part", "archives", "others share the room"],
)
async def test_nothing_is_fetched_before_the_size_is_known(place, job, tmp_path, settings):
    await (await job(**settings)).plan()
    assert place.requested == []
    assert held(tmp_path / "stage") == {}


async def test_nothing_is_fetched_during_a_short_listing(place, job, monkeypatch):
    monkeypatch.setattr(module, "MIN_ENTRIES", len(FILES))
    await (await job()).plan()
    assert place.requested == []


async def test_nothing_is_fetched_during_a_fast_listing(place, job, monkeypatch):
    monkeypatch.setattr(module, "FAST_LISTING_RATE", 0)
    await (await job()).plan()
    assert place.requested == []


@pytest.mark.parametrize("limited", ["volume_bytes", "memory_bytes", "node_bytes"])
async def test_nothing_is_fetched_if_it_may_not_fit(place, job, monkeypatch, limited):
    plenty = Capacity(1 << 40, memory_bytes=1 << 40, node_bytes=1 << 40)
    small = msgspec.structs.replace(plenty, **{limited: SIZE - 1})
    monkeypatch.setattr(dataset_module, "measure", lambda root: small)
    await (await job()).plan()
    assert place.requested == []


async def test_a_sized_reference_gives_the_size(place, job, tmp_path):
    place.pauses["e/last"] = [lambda: place.until(*SMALL)]
    frozen = reference_to(await list_dataset(MemoryStore(place.uri)))
    one = await job(reference=str(frozen), size=None)
    planned = await one.plan()
    await finished(planned, tmp_path)


async def test_nothing_stays_if_the_digest_differs(place, job, tmp_path):
    place.pauses["e/last"] = [lambda: place.until(*SMALL)]
    one = await job(reference=str(Reference(place.uri, "0" * 64, 100, 3)))
    with pytest.raises(Changed, match="has changed since it was frozen"):
        await one.plan()
    assert place.requested
    one.abandon()
    assert held(tmp_path / "stage") == {}
    assert list((tmp_path / "stage").iterdir()) == []


async def test_nothing_stays_if_it_does_not_fit_after_all(place, job, tmp_path):
    """For example, if the listing has more than its size says: the job is then abandoned."""
    place.pauses["e/last"] = [lambda: place.until(*SMALL)]
    one = await job()
    await one.plan()
    one.abandon()
    assert list((tmp_path / "stage").iterdir()) == []


@pytest.mark.parametrize("page", [4096, 65536])
async def test_no_more_is_fetched_than_fits(page):
    """As files are charged: in pages, and with the kernel's own memory."""
    queue = module.EntryQueue(module.Selection(), 3 * (page + KERNEL_BYTES_PER_FILE), RANGE, page)
    for name, data in SMALL.items():
        queue.add(Entry(name, len(data)))
    assert [entry.name for _, entry in await queue.take()] == ["d/00", "d/01", "d/02"]
    assert await queue.take() == []


async def test_only_selected_files_are_fetched(place, job):
    place.pauses["e/last"] = [lambda: place.until("d/11")]
    one = await job(include=("d/1?", "e/*"), exclude=("d/12",))
    await one.plan()
    assert set(place.requested) <= {f"d/1{digit}" for digit in range(10)} - {"d/12"}


async def test_nothing_is_fetched_into_a_filled_staging_directory(place, job, tmp_path):
    first = await job()
    await (await first.plan()).fetch(log_progress=False)
    (tmp_path / "stage" / "d" / "05").unlink()
    place.requested.clear()
    second = await job()
    planned = await second.plan()
    assert place.requested == []
    await planned.fetch(log_progress=False)
    assert held(tmp_path / "stage") == FILES
    assert second.status.files_kept == len(FILES) - 1


async def test_early_files_of_a_killed_start_are_not_adopted(place, job, tmp_path):
    """They have numbers instead of names, which are lost."""
    left = tmp_path / "stage" / PARTIAL_DIR / f"{OVERLAP_PREFIX}1"
    left.mkdir(parents=True)
    (left / "0").write_bytes(b"of another listing")
    one = await job()
    planned = await one.plan()
    await finished(planned, tmp_path)


async def test_another_agents_staging_directory_is_left_alone(place, job, tmp_path):
    other = StagingDir(tmp_path / "stage", tmp_path / "claim")
    assert other.make_overlap_dir() is not None
    one = await job()
    with pytest.raises(Refused, match="another podferry is using the stage"):
        await one.plan()
    one.abandon()
    assert list((tmp_path / "stage" / PARTIAL_DIR).glob(f"{OVERLAP_PREFIX}*"))
    assert place.requested == []
    other.close()


async def test_an_object_that_changes_during_the_listing_is_fetched_again(place, job, tmp_path):
    """For example, if the listing is restarted by directory and something was written between the two."""
    place.changed["d/04"] = [Entry("d/00", len(FILES["d/00"]), "an older tag")]
    place.pauses["e/last"] = [lambda: place.until(*SMALL)]
    original = listing.list_entries

    async def newest(store, seen):
        found = await original(store, seen)
        return [entry for entry in found if entry.tag != "an older tag"]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listing, "list_entries", newest)
        one = await job()
        planned = await one.plan()
    await finished(planned, tmp_path)


async def test_names_that_cannot_be_files_are_refused_and_nothing_is_written_outside(place, job, tmp_path):
    place.changed["d/05"] = [Entry("../outside", 4, "tag")]
    place.content.objects["set/../outside"] = b"gone"
    place.pauses["e/last"] = [lambda: place.until("d/19")]
    one = await job()
    with pytest.raises(Corrupt, match="outside"):
        await one.plan()
    one.abandon()
    assert list((tmp_path / "stage").iterdir()) == []
    assert not (tmp_path / "outside").exists()


async def test_unexpected_responses_are_left_to_the_fetch(place, job, tmp_path):
    place.status = 500
    place.pauses["e/last"] = [lambda: place.until("d/00")]
    one = await job()
    planned = await one.plan()
    assert held(tmp_path / "stage") == {}
    await finished(planned, tmp_path)


async def test_a_full_volume_is_left_to_the_fetch(place, job, tmp_path, monkeypatch):
    write_small, full = StageWriter.write_small, []

    def fails(stage, number, data, entry):
        if stage.root.name.startswith(OVERLAP_PREFIX):
            full.append(entry)
            raise OSError(errno.ENOSPC, "No space left on device")
        write_small(stage, number, data, entry)

    monkeypatch.setattr(StageWriter, "write_small", fails)
    place.pauses["e/last"] = [lambda: place.until("d/00")]
    one = await job()
    planned = await one.plan()
    assert full
    await finished(planned, tmp_path)


async def test_a_failed_listing_is_retried_and_no_file_is_fetched_twice(place, job, tmp_path):
    async def fail():
        await place.until(*SMALL)
        place.pauses.clear()
        raise Unavailable.of("the server does not answer")

    place.pauses["e/last"] = [fail]
    one = await job()
    with pytest.raises(Unavailable):
        await one.plan()
    planned = await one.plan()
    assert sorted(place.requested) == sorted(SMALL)
    await finished(planned, tmp_path)


class Death(BaseException):
    """Ends a process at once."""


async def test_files_of_a_kill_during_adoption_are_fetched_again(place, job, tmp_path, monkeypatch):
    place.pauses["e/last"] = [lambda: place.until(*SMALL)]
    one, rename_in = await job(), StageWriter.rename_in

    def die_at_the_third(stage, path, name):
        if name == "d/02":
            raise Death
        rename_in(stage, path, name)

    with monkeypatch.context() as patch:
        patch.setattr(StageWriter, "rename_in", die_at_the_third)
        with pytest.raises(Death):
            await one.plan()
    one.staging.close()
    second = await job()
    one._overlap = None  # it is dead: it removes nothing
    planned = await second.plan()
    assert sorted(held(tmp_path / "stage")) == ["d/00", "d/01"]
    await planned.fetch(log_progress=False)
    assert held(tmp_path / "stage") == FILES


async def test_unfinished_files_take_no_space(place, job, tmp_path, monkeypatch):
    """Neither those that are incomplete when the listing ends nor those that the plan does not need."""
    monkeypatch.setattr(module, "FINISH_SECONDS", 0.0)
    place.answering.clear()
    place.pauses["e/last"] = [lambda: place.until("d/00")]
    one = await job()
    planned = await one.plan()
    assert held(tmp_path / "stage") == {}
    assert one.status.transfer.handed_over == 0
    place.answering.set()
    await finished(planned, tmp_path)


async def test_a_plan_cancelled_during_the_listing_leaves_nothing(place, job, tmp_path):
    came = asyncio.Event()

    async def stall():
        await place.until(*SMALL)
        came.set()
        await asyncio.Event().wait()

    place.pauses["e/last"] = [stall]
    one = await job()
    planning = asyncio.create_task(one.plan())
    await came.wait()
    planning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await planning
    await one.close()
    assert list((tmp_path / "stage").iterdir()) == []


async def test_a_plan_cancelled_at_the_end_of_the_listing_leaves_no_task(place, job, tmp_path, monkeypatch):
    place.answering.clear()
    place.pauses["e/last"] = [lambda: place.until("d/00")]
    finish, finishing = module.ListingOverlap.finish, asyncio.Event()

    async def noticed(self, seconds=module.FINISH_SECONDS):
        finishing.set()
        await finish(self, seconds)

    monkeypatch.setattr(module.ListingOverlap, "finish", noticed)
    one, before = await job(), asyncio.all_tasks()
    planning = asyncio.create_task(one.plan())
    await finishing.wait()
    planning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await planning
    assert not [task for task in asyncio.all_tasks() - before if "ListingOverlap" in repr(task)]
    await one.close()
    assert list((tmp_path / "stage").iterdir()) == []


async def test_a_file_that_cannot_be_renamed_is_left_to_the_fetch(place, job, tmp_path):
    """Which reports why; here the name is taken by a directory."""
    (tmp_path / "stage" / "d" / "05").mkdir(parents=True)
    place.pauses["e/last"] = [lambda: place.until(*SMALL)]
    one = await job()
    planned = await one.plan()
    with pytest.raises(Refused, match="d/05 cannot be written to the stage"):
        await planned.fetch(log_progress=False)


@pytest.mark.parametrize("fails", [False, True], ids=["the listing ends", "the listing fails"])
async def test_errors_are_left_to_the_fetch(place, job, tmp_path, monkeypatch, fails):
    seen = asyncio.Event()

    async def prepare(self, entries):
        seen.set()
        raise RuntimeError("closed")

    async def pause():
        await seen.wait()
        if fails:
            raise Unavailable.of("the server does not answer")

    place.pauses["e/last"] = [pause]
    one = await job()
    with monkeypatch.context() as patch:
        patch.setattr(UnsignedRequestBuilder, "prepare", prepare)
        if fails:
            with pytest.raises(Unavailable):
                await one.plan()
            return
        planned = await one.plan()
    await finished(planned, tmp_path)


async def test_early_files_are_removed_if_the_fetch_never_starts(place, job, tmp_path):
    """For example, if the checkpoints are refused."""
    place.pauses["e/last"] = [lambda: place.until(*SMALL)]
    one = await job()
    await one.plan()
    await one.close()
    assert held(tmp_path / "stage") == {}


async def test_before_the_plan_the_status_shows_no_progress(place, job, tmp_path):
    shown = []

    async def look():
        await place.until(*SMALL)
        one.progress.refresh()
        shown.append((one.status.files_done, one.status.bytes_done))

    place.pauses["e/last"] = [look]
    one = await job()
    await one.plan()
    assert shown == [(0, 0)]
