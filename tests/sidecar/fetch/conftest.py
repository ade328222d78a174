"""An HTTP server of objects, and a staging directory."""

from __future__ import annotations

import pytest
from aiohttp import web

from podferry.sidecar.staging.staging_dir import StagingDir
from tests.support.object_server import Objects


@pytest.fixture
async def objects():
    return Objects()


@pytest.fixture
async def port(objects, no_waiting):
    app = web.Application(client_max_size=0)
    app.router.add_route("*", "/{name:.*}", objects.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield runner.addresses[0][1]
    await runner.cleanup()


@pytest.fixture
def stage(tmp_path):
    (tmp_path / "stage").mkdir()
    made = StagingDir(tmp_path / "stage", tmp_path / "ownership", 0o640)
    yield made
    made.close()
