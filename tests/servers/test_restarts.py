"""A server that is killed while a dataset is fetched, and started again."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE
from tests.support.rclone import PROGRAM
from tests.support.real_servers import free_port, running

MIB = 1 << 20
FILES = {f"{number}.bin": os.urandom(16 * MIB) for number in range(4)}
OUTAGE_SECONDS = 12.0
"""Longer than the attempts of an engine, and less than what a fetch has patience for."""


def held(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("kind", ["webdav", "http"])
async def test_a_server_that_restarts_does_not_end_the_download(kind: str, tmp_path: Path) -> None:
    files, port, got = tmp_path / "files", free_port(), tmp_path / "got"
    files.mkdir()
    for name, data in FILES.items():
        (files / name).write_bytes(data)
    server = [str(PROGRAM), "serve", kind, str(files), f"--addr=127.0.0.1:{port}", "--bwlimit=16M"]
    server += ["--config", str(tmp_path / "none"), "--cache-dir", str(tmp_path / "cache")]
    words = ["dataset", "get", f"{kind}://127.0.0.1:{port}/", str(got)]
    with running(server, port, tmp_path / "log") as process:
        getting = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "podferry.cli.main", *words, stderr=asyncio.subprocess.PIPE
        )
        deadline = time.monotonic() + PATIENCE
        while not (got.is_dir() and held(got) > 8 * MIB):
            assert getting.returncode is None, (await getting.communicate())[1]
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
        process.kill()
    assert held(got) < sum(map(len, FILES.values())), "all was there before the server ended"
    await asyncio.sleep(OUTAGE_SECONDS)
    with running(server, port, tmp_path / "log"):
        _, said = await asyncio.wait_for(getting.communicate(), PATIENCE)
    assert getting.returncode == 0, said.decode()
    assert {path.name: path.read_bytes() for path in got.iterdir()} == FILES
