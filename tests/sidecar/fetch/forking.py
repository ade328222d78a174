"""A program that forks helpers, for `test_standby`: no test runner may be forked.

`carry DIRECTORY` lets two of them help with a stage there, and prints what went wrong. `leave` prints their
numbers and ends without a word to them, `abandon DIRECTORY` does so while one of them works. `interrupt`
sends itself Ctrl-C while they stand by.
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
from podferry.sidecar.fetch import worker_handle as lane_process
from podferry.sidecar.fetch import worker_prefork as standby
from podferry.sidecar.fetch.fetcher import Fetcher
from podferry.sidecar.fetch.plan import plan_fetch
from podferry.sidecar.fetch.source import FetchSource
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.storage.http.concurrency import INITIAL_CONNECTIONS
from tests.support.plainly import Plainly

TAG = '"tag"'
FILES = {f"d/{number}": bytes([number % 251]) * (number + 1) for number in range(600)}


def standing():
    return [child.pid for child in standby._waiting]


async def answer(request):
    return web.Response(body=FILES[request.match_info["name"]], headers={"ETag": TAG})


async def carry(folder):
    app = web.Application()
    app.router.add_get("/{name:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    await prefetch(folder, runner.addresses[0][1])
    await standby.release_idle()
    await runner.cleanup()


class NothingBehind:
    """A store that is reached by plain requests alone."""

    def __init__(self, port):
        self.request_builder = Plainly(port)


async def prefetch(folder, port):
    manifest = freeze("http://x", [Entry(name, len(data), TAG) for name, data in FILES.items()])
    stage = StagingDir(folder / "stage", folder / "claims")
    stage.root.mkdir()
    settings = PrefetchSettings(processes=2)
    plan = plan_fetch(manifest, stage.claim(manifest), settings)
    await Fetcher(plan, FetchSource(NothingBehind(port)), stage, settings).run()


def check(folder, children):
    """One has carried some of it, the other was dismissed; both are gone."""
    stage = folder / "stage"
    held = {str(path.relative_to(stage)): path.read_bytes() for path in stage.rglob("*") if path.is_file()}
    assert held == FILES
    assert len(children) == 2
    for child in children:
        assert not Path(f"/proc/{child}").exists()


async def abandon(folder):
    """End without a word, once more is asked for than this process alone would."""
    before, asked = standing(), []
    both = asyncio.Event()

    async def answer_never(request):
        asked.append(request)
        if len(asked) > INITIAL_CONNECTIONS:
            both.set()
        await asyncio.Event().wait()

    app = web.Application()
    app.router.add_get("/{name:.*}", answer_never)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    work = asyncio.create_task(prefetch(folder, runner.addresses[0][1]))
    await both.wait()
    assert not work.done()
    print(*set(before) - set(standing()), flush=True)
    os._exit(0)


def main(wish, *folders):
    lane_process.WORTH = 1e-9
    standby.cores = lambda: 3
    standby.prefork()
    children = standing()
    if wish == "carry":
        folder = Path(folders[0])
        uvloop.run(carry(folder))
        check(folder, children)
    elif wish == "abandon":
        uvloop.run(abandon(Path(folders[0])))
    elif wish == "interrupt":
        signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background ignores it
        os.killpg(0, signal.SIGINT)
    else:
        print(*children, flush=True)
        os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
