"""A program that forks worker processes, for `test_processes`: a test runner must not fork.

`fetch DIRECTORY` fills a stage there with two workers and checks it. `exit` prints their PIDs and
exits without ending them, `abandon DIRECTORY` does so while one of them fetches. `interrupt` sends itself
Ctrl-C while they are idle.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

import uvloop
from aiohttp import web

from podferry.contract.manifest import Entry, freeze
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch import pool_runner
from podferry.sidecar.fetch.fetcher import Fetcher
from podferry.sidecar.fetch.plan import plan_fetch
from podferry.sidecar.fetch.source import FetchSource
from podferry.sidecar.fetch.workers import processes
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.storage.http.concurrency import INITIAL_CONNECTIONS
from tests.support.unsigned_requests import UnsignedRequestBuilder

TAG = '"tag"'
FILES = {f"d/{number}": bytes([number % 251]) * (number + 1) for number in range(600)}


def idle_workers():
    return [process.pid for process in processes._idle]


async def answer(request):
    return web.Response(body=FILES[request.match_info["name"]], headers={"ETag": TAG})


async def serve(handler):
    app = web.Application()
    app.router.add_get("/{name:.*}", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner


async def fetch(folder):
    runner = await serve(answer)
    await prefetch(folder, runner.addresses[0][1])
    await processes.release_idle()
    await runner.cleanup()


class RequestsOnly:
    """A store without a client of its own."""

    def __init__(self, port):
        self.request_builder = UnsignedRequestBuilder(port)


async def prefetch(folder, port):
    manifest = freeze("http://x", [Entry(name, len(data), TAG) for name, data in FILES.items()])
    stage = StagingDir(folder / "stage", folder / "ownership")
    stage.root.mkdir()
    settings = PrefetchSettings(processes=2)
    plan = plan_fetch(manifest, stage.claim(manifest), settings)
    await Fetcher(plan, FetchSource(RequestsOnly(port)), stage, settings).run()


def check(folder, workers):
    """One has fetched some of it, the other was released; both have ended."""
    stage = folder / "stage"
    held = {str(path.relative_to(stage)): path.read_bytes() for path in stage.rglob("*") if path.is_file()}
    assert held == FILES
    assert len(workers) == 2
    for pid in workers:
        assert not Path(f"/proc/{pid}").exists()


async def abandon(folder):
    """Exit once there are more requests than this process alone would send."""
    before, requests = idle_workers(), []
    both = asyncio.Event()

    async def answer_never(request):
        requests.append(request)
        if len(requests) > INITIAL_CONNECTIONS:
            both.set()
        await asyncio.Event().wait()

    runner = await serve(answer_never)
    work = asyncio.create_task(prefetch(folder, runner.addresses[0][1]))
    await both.wait()
    assert not work.done()
    print(*set(before) - set(idle_workers()), flush=True)
    os._exit(0)


def main(command, *folders):
    pool_runner.WORKER_SECONDS = 1e-9
    processes.cores = lambda: 3
    processes.prefork()
    workers = idle_workers()
    if command == "fetch":
        folder = Path(folders[0])
        uvloop.run(fetch(folder))
        check(folder, workers)
    elif command == "abandon":
        uvloop.run(abandon(Path(folders[0])))
    elif command == "interrupt":
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a background process ignores it
        os.killpg(0, signal.SIGINT)
    else:
        print(*workers, flush=True)
        os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
