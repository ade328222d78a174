"""Each scheme over IPv6, and those that HTTP carries through a proxy to a server with a private CA."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from podferry.contract.uri import Uri
from tests.support.connect_proxy import ConnectProxy, connect_proxy, tls_relay
from tests.support.patience import PATIENCE
from tests.support.private_ca import PrivateCa
from tests.support.scheme_site import SCHEMES, Site

NAME = "o d#d?/x#y?z %20&a+b"
CONNECTED = [scheme.names[0] for scheme in SCHEMES if scheme.names[0] != "file"]
WITHOUT_IPV6 = {"hdfs", "webhdfs"}
"""Hadoop's own servers have none."""
BY_HTTP = ["s3", "bos", "az", "gs", "oss", "https", "webdav", "hf"]
"""`swebhdfs://` is in test_hdfs_kerberos.py: its NameNode redirects to servers of its own certificate."""
WITH_TLS = {"webdav": "webdavs"}
BEHIND = "store"
"""The server's name, which only the proxy knows."""


@pytest.fixture
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    with ExitStack() as stack:
        found = Site(request, tmp_path, stack)
        (found.files / NAME).parent.mkdir(parents=True)
        (found.files / NAME).write_bytes(b"0123456789")
        yield found


async def fetched(uri: Uri, into: Path, site: Site) -> dict[str, bytes]:
    """What `podferry dataset get` fetches; a failure or a hang fails the test."""
    environ = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **site.variables}
    command = [
        sys.executable,
        "-m",
        "podferry.cli.main",
        "dataset",
        "get",
        str(uri),
        str(into),
        *site.options,
    ]
    output = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.STDOUT}
    process = await asyncio.create_subprocess_exec(*command, env=environ, **output)
    async with asyncio.timeout(PATIENCE):
        said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
    return {str(path.relative_to(into)): path.read_bytes() for path in into.rglob("*") if path.is_file()}


@pytest.mark.parametrize("scheme", [name for name in CONNECTED if name not in WITHOUT_IPV6])
async def test_over_ipv6(scheme: str, site: Site, tmp_path: Path) -> None:
    uri = site.uri(scheme)
    await site.put(uri)
    async with site.cut(uri, 1 << 40, 0, listing=True, host="::1") as (behind, relay):
        assert "[::1]" in f"{behind} {site.endpoint} {site.variables}"
        assert await fetched(behind, tmp_path / "got", site) == {NAME: b"0123456789"}
        assert relay.passed > 0


@asynccontextmanager
async def behind_a_proxy(uri: Uri, site: Site, folder: Path) -> AsyncIterator[tuple[Uri, ConnectProxy]]:
    """The directory at `https://store`, where variables and endpoint of the site now lead too."""
    ca, hub = PrivateCa(), site.variables.get("HF_ENDPOINT", "")
    (folder / "ca.pem").write_text(ca.pem)
    at = urlsplit(hub or site.endpoint or f"http://{uri.bucket}")
    names = (BEHIND, f"{uri.bucket}.{BEHIND}") if site.endpoint else (BEHIND,)
    async with tls_relay(ca.server_context(*names), at.port or 0) as tls, connect_proxy() as proxy:
        proxy.ports = {f"{name}:443": tls for name in names}
        site.variables = {
            **site.variables,
            "HTTPS_PROXY": proxy.url,
            "REQUESTS_CA_BUNDLE": str(folder / "ca.pem"),
        }
        url = urlunsplit(("https", BEHIND, at.path, "", ""))
        if hub:
            site.variables["HF_ENDPOINT"] = url
        elif site.endpoint:
            site.endpoint = url
        else:
            uri = Uri(WITH_TLS.get(uri.scheme, "https"), BEHIND, uri.key)
        yield uri, proxy


@pytest.mark.parametrize("scheme", BY_HTTP)
async def test_through_a_proxy_with_a_private_certificate(scheme: str, site: Site, tmp_path: Path) -> None:
    uri = site.uri("http" if scheme == "https" else scheme)
    await site.put(uri)
    async with behind_a_proxy(uri, site, tmp_path) as (behind, proxy):
        assert await fetched(behind, tmp_path / "got", site) == {NAME: b"0123456789"}
    assert set(proxy.requests) <= {f"CONNECT {name}" for name in proxy.ports}
    assert proxy.requests
