"""Files that a web server sends while they are overwritten in place: none is a mixture of two versions."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence

import pytest
from aiohttp import web

from podferry.contract.errors import Changed, NotFound, Refused, Unavailable
from podferry.contract.manifest import Entry, freeze
from podferry.contract.uri import parse_uri
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch import pool_runner, sinks
from podferry.sidecar.fetch.fetcher import Fetcher
from podferry.sidecar.fetch.plan import plan_fetch
from podferry.sidecar.fetch.source import FetchSource
from podferry.sidecar.fetch.workers.handle import WorkerHandle
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.storage.http.buffer_pool import BUFFER_BYTES
from podferry.storage.store import Confirm, StoreConfig
from podferry.storage.web.store import WebStore
from tests.support.in_place_server import InPlaceServer
from tests.support.patience import PATIENCE

RANGE = 2 * BUFFER_BYTES
SETTINGS = PrefetchSettings(range_bytes=RANGE, buffer_bytes=8 * RANGE, attempts=2, processes=1)
FILES = {
    "small": os.urandom(5000),
    "pieces": os.urandom(BUFFER_BYTES + 5000),
    "ranges": os.urandom(RANGE + 5000),
}
ENTRIES = {name: Entry(name, len(data), '"0"') for name, data in FILES.items()}


class FlakyStore(WebStore):
    """Cannot be reached the first time that it has to confirm something."""

    failures = 1

    def confirming(self):
        self.inner = super().confirming()
        return self

    async def __aenter__(self) -> Confirm:
        confirm = await self.inner.__aenter__()

        async def flaky(entries: Sequence[Entry]) -> None:
            self.failures -= 1
            if self.failures >= 0:
                raise Unavailable.of("the server restarts")
            await confirm(entries)

        return flaky

    async def __aexit__(self, *error: object) -> None:
        await self.inner.__aexit__(*error)


class Site:
    """A server, a stage, and fetches from one into the other."""

    def __init__(self, server: InPlaceServer, port: int, stage: StagingDir) -> None:
        self.server, self.stage = server, stage
        self.uri = parse_uri(f"http://127.0.0.1:{port}")
        self.store = WebStore(self.uri, StoreConfig())

    async def fetch(self, *names: str, settings: PrefetchSettings = SETTINGS) -> None:
        manifest = freeze(str(self.uri), [ENTRIES[name] for name in names])
        plan = plan_fetch(manifest, self.stage.claim(manifest), settings)
        await Fetcher(plan, FetchSource(self.store), self.stage, settings).run()

    def held(self) -> dict[str, bytes]:
        paths = (path for path in self.stage.root.rglob("*") if path.is_file())
        return {str(path.relative_to(self.stage.root)): path.read_bytes() for path in paths}


@pytest.fixture
async def site(stage: StagingDir, no_waiting: None) -> AsyncIterator[Site]:
    server = InPlaceServer(dict(FILES))
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    site = Site(server, runner.addresses[0][1], stage)
    yield site
    await site.store.close()
    await runner.cleanup()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file arrives at once."""
    monkeypatch.setattr(sinks, "PROMPT_SECONDS", 0.0)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.usefixtures("slow")
async def test_a_mixture_of_two_versions_is_refused(site: Site, name: str) -> None:
    site.server.between = site.server.overwrite
    with pytest.raises(Changed, match=rf'/{name}.*"0"'):
        await site.fetch(name)
    assert site.held() == {}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.usefixtures("slow")
async def test_a_file_gets_its_name_once_it_is_confirmed(site: Site, name: str) -> None:
    named = []

    async def look(requested: str) -> None:
        named.extend(path.name for path in site.stage.root.iterdir() if path.is_file())

    site.server.between = look
    await site.fetch(name)
    assert site.server.requests[-1] == f"HEAD {name}", "after its last byte"
    assert site.held() == {name: FILES[name]}
    assert named == []
    assert (site.stage.root / name).stat().st_mode & 0o777 == site.stage.file_mode


async def test_a_small_file_that_arrives_at_once_is_not_asked_for_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sinks, "PROMPT_SECONDS", PATIENCE)
    await site.fetch("small", "pieces")
    assert sorted(site.server.requests) == ["GET pieces", "GET small", "HEAD pieces"]
    assert site.held() == {name: FILES[name] for name in ("small", "pieces")}


@pytest.mark.usefixtures("slow")
async def test_a_file_that_is_removed_meanwhile_is_named(site: Site) -> None:
    async def remove(name: str) -> None:
        site.server.removed.add(name)

    site.server.between = remove
    with pytest.raises(NotFound, match="small"):
        await site.fetch("small")
    assert site.held() == {}


@pytest.mark.usefixtures("slow")
async def test_a_server_that_does_not_answer_is_asked_again(site: Site) -> None:
    site.store = FlakyStore(site.uri, StoreConfig())
    await site.fetch("small", "ranges")
    assert site.store.failures < 0
    assert site.held() == {name: FILES[name] for name in ("small", "ranges")}


@pytest.mark.usefixtures("slow")
async def test_a_file_that_cannot_get_its_name_is_named(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str, name: str) -> None:
        raise PermissionError(f"not {name}")

    monkeypatch.setattr(site.stage, "rename_in", fail)
    with pytest.raises(Refused, match="small cannot be written"):
        await site.fetch("small")


@pytest.mark.parametrize("overwritten", [False, True])
async def test_files_that_worker_processes_fetch_are_confirmed(
    site: Site, monkeypatch: pytest.MonkeyPatch, overwritten: bool
) -> None:
    monkeypatch.setattr(pool_runner, "WORKER_SECONDS", 1e-9)
    held, end_job = [], WorkerHandle._end_job

    def recorded(handle: WorkerHandle, result) -> None:
        held.append(result.held)
        end_job(handle, result)

    async def only_workers(runner, queue, max_connections=None) -> None:
        """Leaves everything to them."""

    monkeypatch.setattr(WorkerHandle, "_end_job", recorded)
    monkeypatch.setattr(pool_runner.PoolRunner, "run_here", only_workers)
    settings = PrefetchSettings(range_bytes=RANGE, buffer_bytes=8 * RANGE, processes=2)
    if overwritten:
        site.server.between = site.server.overwrite
        with pytest.raises(Changed, match="pieces"):
            await site.fetch("pieces", settings=settings)
    else:
        await site.fetch("pieces", settings=settings)
    assert [bool(path) for path in held] == [True]
    assert site.held() == ({} if overwritten else {"pieces": FILES["pieces"]})
