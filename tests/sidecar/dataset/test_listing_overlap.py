"""Small files that are downloaded during a long listing."""

import asyncio
import errno
import hashlib
import itertools

import msgspec
import pytest
from aiohttp import web

from podferry.contract.errors import Changed, Corrupt, Refused, Unavailable
from podferry.contract.manifest import Entry
from podferry.contract.reference import Reference, reference_to
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
        uri: Where its store says that it lies.
        asked: Names of which a file was asked for.
        answering: Whether it answers at last.
        pause: Is called by the listing before the entry of this name.
    """

    def __init__(self):
        name = f"ahead-{next(COUNTER)}"
        self.content = CONTENTS[name] = Content()
        self.content.objects.update({f"set/{key}": data for key, data in FILES.items()})
        self.uri = parse_uri(f"memory://{name}/set")
        self.asked, self.pauses, self.status = [], {}, 200
        self.answering = asyncio.Event()
        self.answering.set()
        self.changed, self.came = {}, asyncio.Condition()

    async def answer(self, request):
        name = request.match_info["name"]
        self.asked.append(name)
        whole = self.content.objects[f"set/{name}"]
        tag = hashlib.sha256(whole).hexdigest()[:32]  # as `MemoryStore` has it
        async with self.came:
            self.came.notify_all()
        await self.answering.wait()
        return web.Response(body=whole, status=self.status, headers={"ETag": f'"{tag}"'})

    async def until(self, *names):
        async with self.came:
            await asyncio.wait_for(self.came.wait_for(lambda: {*names} <= {*self.asked}), 5)

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
    """Datasets' job on one stage, as restarts are; the one before ends."""
    (tmp_path / "stage").mkdir()
    made = []

    async def making(alone=True, **wishes):
        if made:
            await made[-1].close()
        wishes = {"reference": str(place.uri), "size": SIZE} | wishes
        spec = DatasetSpec(path=str(tmp_path / "stage"), **wishes)
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


async def test_small_files_come_before_all_is_listed(place, job, tmp_path):
    place.pauses["e/last"] = [lambda: place.until(*SMALL)]
    one = await job()
    planned = await one.plan()
    assert sorted(place.asked) == sorted(SMALL), "each once, neither the empty one nor the large one"
    assert held(tmp_path / "stage") == SMALL
    await finished(planned, tmp_path)
    assert not set(place.asked[len(SMALL) :]) & set(SMALL)
    assert one.status.transfer.files == len(FILES)
    assert not (tmp_path / "stage" / PARTIAL_DIR).exists()


async def test_nothing_has_its_name_before_all_is_listed(place, job, tmp_path):
    seen = []

    async def look():
        await place.until(*SMALL)
        seen.extend(held(tmp_path / "stage"))

    place.pauses["e/last"] = [look]
    await (await job()).plan()
    assert seen
    assert all(name.startswith(f"{PARTIAL_DIR}/{OVERLAP_PREFIX}") for name in seen)


@pytest.mark.parametrize(
    "wishes",
    [{"size": None}, {"shard": Shard(0, 2)}, {"unpack": Unpack.ALWAYS}, {"alone": False}],
    ids=["size unknown", "a part", "archives", "others share the room"],
)
async def test_where_the_sum_is_open_no_byte_moves_before_it_is_known(place, job, tmp_path, wishes):
    await (await job(**wishes)).plan()
    assert place.asked == []
    assert held(tmp_path / "stage") == {}


async def test_a_short_listing_is_not_worth_it(place, job, monkeypatch):
    monkeypatch.setattr(module, "MIN_ENTRIES", len(FILES))
    await (await job()).plan()
    assert place.asked == []


async def test_a_listing_that_keeps_this_process_busy_goes_first(place, job, monkeypatch):
    monkeypatch.setattr(module, "FAST_LISTING_RATE", 0)
    await (await job()).plan()
    assert place.asked == []


@pytest.mark.parametrize("lacking", ["volume_bytes", "memory_bytes", "node_bytes"])
async def test_what_may_not_fit_waits_for_the_sum(place, job, monkeypatch, lacking):
    plenty = Capacity(1 << 40, memory_bytes=1 << 40, node_bytes=1 << 40)
    small = msgspec.structs.replace(plenty, **{lacking: SIZE - 1})
    monkeypatch.setattr(dataset_module, "measure", lambda root: small)
    await (await job()).plan()
    assert place.asked == []


async def test_a_frozen_and_sized_reference_tells_the_room(place, job, tmp_path):
    place.pauses["e/last"] = [lambda: place.until(*SMALL)]
    frozen = reference_to(await list_dataset(MemoryStore(place.uri)))
    one = await job(reference=str(frozen), size=None)
    planned = await one.plan()
    await finished(planned, tmp_path)


async def test_where_the_digest_is_another_nothing_stays(place, job, tmp_path):
    place.pauses["e/last"] = [lambda: place.until(*SMALL)]
    one = await job(reference=str(Reference(place.uri, "0" * 64, 100, 3)))
    with pytest.raises(Changed, match="has changed since it was frozen"):
        await one.plan()
    assert place.asked
    one.abandon()
    assert held(tmp_path / "stage") == {}
    assert list((tmp_path / "stage").iterdir()) == []


async def test_where_it_does_not_fit_after_all_nothing_stays(place, job, tmp_path):
    """As where the listing holds more than its size says: whoever refuses it abandons the job."""
    place.pauses["e/last"] = [lambda: place.until(*SMALL)]
    one = await job()
    await one.plan()
    one.abandon()
    assert list((tmp_path / "stage").iterdir()) == []


@pytest.mark.parametrize("page", [4096, 65536])
async def test_no_more_comes_than_there_is_room_for(page):
    """As files are charged: in the pages of this kernel, and with its own memory."""
    queue = module.EntryQueue(module.Selection(), 3 * (page + KERNEL_BYTES_PER_FILE), RANGE, page)
    for name, data in SMALL.items():
        queue.add(Entry(name, len(data)))
    assert [entry.name for _, entry in await queue.take()] == ["d/00", "d/01", "d/02"]
    assert await queue.take() == []


async def test_only_what_is_selected_comes(place, job):
    place.pauses["e/last"] = [lambda: place.until("d/11")]
    one = await job(include=("d/1?", "e/*"), exclude=("d/12",))
    await one.plan()
    assert set(place.asked) <= {f"d/1{digit}" for digit in range(10)} - {"d/12"}


async def test_what_is_there_already_is_left_to_the_claim(place, job, tmp_path):
    first = await job()
    await (await first.plan()).fetch(log_progress=False)
    (tmp_path / "stage" / "d" / "05").unlink()
    place.asked.clear()
    second = await job()
    planned = await second.plan()
    assert place.asked == []
    await planned.fetch(log_progress=False)
    assert held(tmp_path / "stage") == FILES
    assert second.status.files_kept == len(FILES) - 1


async def test_what_a_killed_start_had_fetched_ahead_is_not_taken(place, job, tmp_path):
    """It lies under numbers: whose they were, nobody remembers."""
    left = tmp_path / "stage" / PARTIAL_DIR / f"{OVERLAP_PREFIX}1"
    left.mkdir(parents=True)
    (left / "0").write_bytes(b"of another listing")
    one = await job()
    planned = await one.plan()
    await finished(planned, tmp_path)


async def test_another_agents_stage_is_not_touched(place, job, tmp_path):
    other = StagingDir(tmp_path / "stage", tmp_path / "claim")
    assert other.make_overlap_dir() is not None
    one = await job()
    with pytest.raises(Refused, match="another podferry is using the stage"):
        await one.plan()
    one.abandon()
    assert list((tmp_path / "stage" / PARTIAL_DIR).glob(f"{OVERLAP_PREFIX}*"))
    assert place.asked == []
    other.close()


async def test_an_object_that_is_listed_anew_with_another_content_is_fetched_anew(place, job, tmp_path):
    """As where a listing is begun again by directories, and something was written between the two."""
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


async def test_names_that_are_no_files_are_refused_and_nothing_leaves_the_stage(place, job, tmp_path):
    place.changed["d/05"] = [Entry("../outside", 4, "tag")]
    place.content.objects["set/../outside"] = b"gone"
    place.pauses["e/last"] = [lambda: place.until("d/19")]
    one = await job()
    with pytest.raises(Corrupt, match="outside"):
        await one.plan()
    one.abandon()
    assert list((tmp_path / "stage").iterdir()) == []
    assert not (tmp_path / "outside").exists()


async def test_a_server_that_gives_no_plain_answer_is_left_to_the_plan(place, job, tmp_path):
    place.status = 500
    place.pauses["e/last"] = [lambda: place.until("d/00")]
    one = await job()
    planned = await one.plan()
    assert held(tmp_path / "stage") == {}
    await finished(planned, tmp_path)


async def test_a_full_volume_is_left_to_the_plan(place, job, tmp_path, monkeypatch):
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


async def test_a_listing_that_fails_is_tried_again_and_nothing_comes_twice(place, job, tmp_path):
    async def fail():
        await place.until(*SMALL)
        place.pauses.clear()
        raise Unavailable.of("the server does not answer")

    place.pauses["e/last"] = [fail]
    one = await job()
    with pytest.raises(Unavailable):
        await one.plan()
    planned = await one.plan()
    assert sorted(place.asked) == sorted(SMALL)
    await finished(planned, tmp_path)


class Death(BaseException):
    """Ends a process at once."""


async def test_a_kill_while_names_are_given_leaves_nothing_that_counts(place, job, tmp_path, monkeypatch):
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


async def test_what_was_cut_off_takes_no_room(place, job, tmp_path, monkeypatch):
    """What has not come when the listing ends, nor what the plan does not want."""
    monkeypatch.setattr(module, "FINISH_SECONDS", 0.0)
    place.answering.clear()
    place.pauses["e/last"] = [lambda: place.until("d/00")]
    one = await job()
    planned = await one.plan()
    assert held(tmp_path / "stage") == {}
    assert one.status.transfer.handed_over == 0, "to nobody"
    place.answering.set()
    await finished(planned, tmp_path)


async def test_who_is_cancelled_while_it_lists_leaves_nothing(place, job, tmp_path):
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


async def test_who_is_cancelled_at_the_end_of_the_listing_leaves_nothing_at_work(
    place, job, tmp_path, monkeypatch
):
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


async def test_a_file_that_cannot_have_its_name_is_left_to_the_plan(place, job, tmp_path):
    """It tells why; here somebody's empty directory stands there."""
    (tmp_path / "stage" / "d" / "05").mkdir(parents=True)
    place.pauses["e/last"] = [lambda: place.until(*SMALL)]
    one = await job()
    planned = await one.plan()
    with pytest.raises(Refused, match="d/05 cannot be written to the stage"):
        await planned.fetch(log_progress=False)


@pytest.mark.parametrize("fails", [False, True], ids=["the listing ends", "the listing fails"])
async def test_whatever_goes_wrong_ahead_is_left_to_the_plan(place, job, tmp_path, monkeypatch, fails):
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


async def test_what_came_for_a_fetch_that_never_began_goes(place, job, tmp_path):
    """As where the checkpoints beside it are refused."""
    place.pauses["e/last"] = [lambda: place.until(*SMALL)]
    one = await job()
    await one.plan()
    await one.close()
    assert held(tmp_path / "stage") == {}


async def test_before_the_plan_the_status_claims_nothing(place, job, tmp_path):
    told = []

    async def look():
        await place.until(*SMALL)
        one.progress.refresh()
        told.append((one.status.files_done, one.status.bytes_done))

    place.pauses["e/last"] = [look]
    one = await job()
    await one.plan()
    assert told == [(0, 0)]
