"""Kills a restore at each of its steps and starts it again. A program of its own, since it forks and kills.

Arguments: the destination's URI, the lineage, an empty directory. Prints how many kills there were.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.restore.downloader import CommitDownloader
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.storage.local.store import LocalStore

STEPS = ("mkdir", "pwrite", "rename", "replace", "chmod")
"""The functions of `os` by which a restore changes the file system."""
SMALL = PrefetchSettings(in_flight=4, range_bytes=1000, buffer_bytes=4000, attempts=1)


class Recording(LocalStore):
    """Records the names that are read."""

    names: tuple[str, ...] = ()

    async def read(self, name, *arguments):
        self.names += (name,)
        return await super().read(name, *arguments)


def main(uri: str, lineage: str, base: Path) -> None:
    for kills in range(1000):
        target, staging = base / f"target-{kills}", base / f"staging-{kills}"
        target.mkdir()
        again = partial(restore, uri, lineage, target, staging)
        if child(partial(again, dies_at=kills)) == 0:
            print(kills)
            return
        wanted = contents(uri, lineage)
        assert held(target).items() <= wanted.items(), f"half a file after kill {kills}"
        whole = {name for name in held(staging / "files") if not name.startswith(".")}
        assert all(held(staging / "files")[name] == wanted[name] for name in whole)
        there = {*whole, *held(target)}
        assert child(partial(again, spared=there)) == 0, f"kill {kills}"
        assert held(target) == wanted, f"not completed after kill {kills}"
        assert not staging.exists()


def child(work: Callable[[], None]) -> int:
    process = os.fork()
    if process == 0:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - a fork must not go on as its parent
            print(repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def restore(uri, lineage, target, staging, dies_at=None, spared=frozenset()):
    if dies_at is not None:
        arm(dies_at)
    store = Recording(parse_uri(uri))
    commit = asyncio.run(CommitReader(LineageStore(store, lineage)).read(1))
    store.names = ()
    asyncio.run(
        CommitDownloader(LineageStore(store, lineage), settings=SMALL).download(commit, target, staging)
    )
    again = [file.name for file in commit.files if f"{lineage}/{file.object}" in store.names]
    assert not spared & set(again), f"fetched again: {again}"


def arm(left: int) -> None:
    """Die before that step."""

    def armed(step):
        def call(*arguments, **options):
            nonlocal left
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            return step(*arguments, **options)

        return call

    for name in STEPS:
        setattr(os, name, armed(getattr(os, name)))


def contents(uri: str, lineage: str) -> dict[str, bytes]:
    store = LocalStore(parse_uri(uri))
    commit = asyncio.run(CommitReader(LineageStore(store, lineage)).read(1))
    root = Path("/", store.uri.key, lineage)
    return {file.name: (root / file.object).read_bytes() for file in commit.files}


def held(root: Path) -> dict[str, bytes]:
    files = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
