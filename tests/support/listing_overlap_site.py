"""A dataset on a server that lists slowly, and jobs that fetch it meanwhile."""

import asyncio
import hashlib
import itertools

import pytest
from aiohttp import web

from podferry.contract.spec import DatasetSpec
from podferry.contract.uri import parse_uri
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.dataset import listing_overlap as module
from podferry.sidecar.dataset.dataset_job import DatasetJob
from podferry.sidecar.dataset.dataset_placement import DatasetPlacement
from podferry.storage.listing import dataset as listing
from podferry.storage.memory.store import CONTENTS, Content, MemoryStore
from tests.support.patience import PATIENCE
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
            await asyncio.wait_for(self.came.wait_for(lambda: {*names} <= {*self.requested}), PATIENCE)

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
    monkeypatch.setattr(module, "FINISH_SECONDS", PATIENCE)
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
