"""Connections that are cut in the middle, for each scheme: by a relay in front of a real server.

What had arrived is not sent again, and a listing that was cut is not taken for a shorter one.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import import_module  # what only these tests need is not installed for the others
from pathlib import Path

import pytest

from podferry.contract.exit_codes import EXIT_FAILED
from tests.support.patience import PATIENCE
from tests.support.real_servers import free_port
from tests.support.scheme_site import DATA_HTTP, RELAYED, SCHEMES, Site

MIB = 1 << 20
CONNECTED = [scheme for scheme in SCHEMES if scheme.names[0] != "file"]
READ = [scheme.names[0] for scheme in CONNECTED]
WRITTEN = [scheme.names[0] for scheme in CONNECTED if scheme.writable]
FILES = {"large": os.urandom(12 * MIB), "below/other": os.urandom(5 * MIB), "small": b"12345"}
TOTAL = sum(map(len, FILES.values()))
AFTER, CUTS = 3 * MIB, 3
"""Bytes of a connection until it is cut, and how many connections are."""
NAMES, LISTING_AFTER = 150, 5_000
"""Files of a listing, and bytes after which it is cut: behind the keys of SSH, and before the last name."""
RECORDS = ".podferry/"
"""What a sync remembers of itself."""
CONTINUED = {"sftp", "ftp", "ftps", "hdfs"}
"""Where a request is continued after its last byte; elsewhere it is sent again."""


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory: pytest.TempPathFactory):
    """A file system whose DataNode names itself by the relays' address."""
    own = {"dfs.datanode.hostname": RELAYED, DATA_HTTP: f"127.0.0.1:{free_port()}"}
    with import_module("tests.support.hadoop").hadoop(tmp_path_factory.mktemp("hadoop"), own) as found:
        yield found


@pytest.fixture
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    with ExitStack() as stack:
        yield Site(request, tmp_path, stack)


def written(folder: Path) -> None:
    for name, data in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def held(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def called(*words: str, variables: dict[str, str]) -> tuple[int, str]:
    """The exit status of `podferry`, and what it prints; a hang fails the test."""
    environ = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **variables}
    output = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.STDOUT}
    command = [sys.executable, "-m", "podferry.cli.main", *words]
    process = await asyncio.create_subprocess_exec(*command, env=environ, **output)
    async with asyncio.timeout(PATIENCE):
        said, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, said.decode()


@pytest.mark.parametrize("scheme", READ)
async def test_a_cut_download_is_resumed(scheme: str, site: Site, tmp_path: Path) -> None:
    written(site.files)
    uri = site.uri(scheme)
    await site.put(uri)
    async with site.cut(uri, AFTER, CUTS) as (relayed, relay):
        words = ["dataset", "get", str(relayed), str(tmp_path / "got"), *site.options]
        code, said = await called(*words, variables=site.variables)
    assert code == 0, said
    assert held(tmp_path / "got") == FILES
    assert relay.cuts == 0
    again = relay.passed - TOTAL
    assert again < MIB + CUTS * (MIB if scheme in CONTINUED else AFTER), "what had arrived was sent again"


@pytest.mark.parametrize("scheme", WRITTEN)
async def test_a_cut_upload_is_never_half_visible(scheme: str, site: Site, tmp_path: Path) -> None:
    written(tmp_path / "own")
    uri = site.uri(scheme)
    codes = []
    async with site.cut(uri, AFTER, CUTS, upward=True) as (relayed, relay):
        endpoint = ["--to-endpoint", site.endpoint] if site.endpoint else []
        words = ["dataset", "sync", str(tmp_path / "own"), str(relayed), *endpoint]
        while codes[-1:] != [0]:
            code, said = await called(*words, variables=site.variables)
            codes.append(code)
            assert code in {0, EXIT_FAILED}, said
            store = site.open(relayed)
            names = [entry.name async for entry in store.entries() if not entry.name.startswith(RECORDS)]
            found = {name: bytes(await store.read(name)) for name in names}
            await store.close()
            assert found.items() <= FILES.items()
            assert len(codes) <= CUTS + 1, said
    assert found == FILES
    assert relay.cuts == 0
    assert relay.passed < TOTAL + 2 * MIB + CUTS * AFTER, "more than what was cut was sent again"


@pytest.mark.parametrize("scheme", READ)
async def test_a_cut_listing_is_complete(scheme: str, site: Site) -> None:
    listed = [f"name-{number:03}" for number in range(NAMES)]
    for name in listed:
        (site.files / name).write_bytes(b"1")
    uri = site.uri(scheme)
    await site.put(uri)
    async with site.cut(uri, LISTING_AFTER, CUTS, listing=True) as (relayed, relay):
        code, said = await called("dataset", "ls", str(relayed), *site.options, variables=site.variables)
    assert relay.cuts < CUTS, "no connection was cut"
    assert code == 0, said
    assert [word for word in said.split() if word.startswith("name-")] == listed
