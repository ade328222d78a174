"""The folder of a checkpoint is complete for the store's own tool: the documented line copies all of it."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.detect.detector import scan_checkpoints
from podferry.sidecar.checkpoint.upload.hardlink_hold import HardlinkHolds
from podferry.storage.factory import open_store
from podferry.storage.store import Store, StoreConfig
from tests.support.checkpoint_rig import Rig
from tests.support.moto_server import moto_server
from tests.support.store_calls import KEYS

PAGE = Path(__file__).parents[3] / "docs/checkpoints.md"
MIB = 1 << 20


@pytest.fixture
def endpoint() -> Iterator[str]:
    """An S3 server with the bucket `results`."""
    with moto_server("results") as (endpoint, _):
        yield endpoint


async def copied_plainly(store: Store, folder: str, endpoint: str, target: Path) -> dict[str, bytes]:
    """The files below a folder, by the documented line, or by the plain store if there is no such tool."""
    found = re.search(r"^aws s3 cp --recursive s3://\S+ \S+$", PAGE.read_text(), re.MULTILINE)
    assert found is not None
    if shutil.which("aws") is None:
        names = [entry.name async for entry in store.entries(f"run/{folder}")]
        return {name.removeprefix(f"run/{folder}/"): bytes(await store.read(name)) for name in names}
    line = found[0].replace("s3://results/digits/LINEAGE/CHECKPOINT", f"s3://results/digits/run/{folder}")
    environment = {**os.environ, **KEYS, "AWS_ENDPOINT_URL": endpoint, "AWS_DEFAULT_REGION": "us-east-1"}
    run = partial(subprocess.run, cwd=target, env=environment, check=True, capture_output=True)
    await asyncio.to_thread(run, ["/bin/sh", "-c", line])
    root = target / "CHECKPOINT"
    paths = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


async def test_the_documented_line_copies_unchanged_files(rig: Rig, endpoint: str, tmp_path: Path) -> None:
    config = StoreConfig(endpoint=endpoint, credentials=KEYS)
    store = open_store(parse_uri("s3://results/digits"), config)
    tokenizer = os.urandom(3 * MIB)
    try:
        uploader = rig.uploader(store=store)
        for number in (1, 2, 3):
            rig.write(f"step-{number}/tokenizer.json", tokenizer)  # sent in parts, then never again
            rig.write(f"step-{number}/config/model.json", b"{}")
            rig.write(f"step-{number}/weights.bin", b"%d" % number * 1000)
            held = HardlinkHolds(rig.holds).link(
                scan_checkpoints(rig.root)[1][f"step-{number}"], rig.root, 1.0
            )
            sent = uploader._counters.sent
            commit = await uploader.upload(held)
            if number > 1:
                assert uploader._counters.sent - sent == 1000
        assert {file.object for file in commit.files} == {
            f"{commit.checkpoint}/{file.name}" for file in commit.files
        }
        found = await copied_plainly(store, commit.checkpoint, endpoint, tmp_path)
    finally:
        await store.close()
    assert found == {
        "step-3/tokenizer.json": tokenizer,
        "step-3/config/model.json": b"{}",
        "step-3/weights.bin": b"3" * 1000,
    }
