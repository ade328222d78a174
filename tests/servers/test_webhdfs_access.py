"""WebHDFS with TLS and a private certificate."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import Uri
from podferry.storage.factory import open_store
from podferry.storage.network.ca_bundle import CaBundle
from podferry.storage.network.settings import Network
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import Limits
from tests.support.hadoop import Hadoop, hadoop
from tests.support.real_servers import free_port
from tests.support.request_builder_contract import Client

LIMITS = Limits(retries=1, retry_seconds=5)
PASSWORD = "of-tests"


def keytool(folder: Path, *words: str) -> str:
    store = ["-alias", "server", "-keystore", str(folder / "keys"), "-storepass", PASSWORD]
    return subprocess.run(["keytool", *words, *store], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def secured(folders) -> Iterator[tuple[Hadoop, str, str]]:
    """The file system, its address for HTTPS, and its certificate."""
    folder, address = folders.mktemp("tls"), f"127.0.0.1:{free_port()}"
    names = ["-ext", "SAN=ip:127.0.0.1,dns:localhost", "-dname", "CN=localhost"]
    keytool(folder, "-genkeypair", "-keyalg", "EC", "-storetype", "PKCS12", *names)
    properties = {
        "location": folder / "keys",
        "password": PASSWORD,
        "keypassword": PASSWORD,
        "type": "pkcs12",
    }
    rows = (
        f"<property><name>ssl.server.keystore.{name}</name><value>{value}</value></property>"
        for name, value in properties.items()
    )
    (folder / "ssl-server.xml").write_text(f"<configuration>{''.join(rows)}</configuration>")
    more = {
        "dfs.http.policy": "HTTPS_ONLY",
        "dfs.namenode.https-address": address,
        "dfs.datanode.https.address": "127.0.0.1:0",
    }
    with hadoop(folder, more) as found:
        yield found, address, keytool(folder, "-exportcert", "-rfc")


def trusting(certificate: str) -> StoreConfig:
    return StoreConfig(network=Network(CaBundle(certificate, ("ca",))))


async def test_tls_with_a_private_certificate(secured: tuple[Hadoop, str, str]) -> None:
    _, address, certificate = secured
    store = open_store(Uri("swebhdfs", address, "t"), trusting(certificate), LIMITS)
    await store.write("a", b"0123456789")
    (entry,) = [entry async for entry in store.entries()]
    assert bytes(await store.read("a", 2, 3, entry.tag, entry.size)) == b"234"
    client = Client(store.request_builder)
    assert (await client.get(entry, 2, 3))[3] == b"234"
    await client.close()
    await store.close()


async def test_an_untrusted_certificate_is_named(secured: tuple[Hadoop, str, str]) -> None:
    store = open_store(Uri("swebhdfs", secured[1], "t"), StoreConfig(), LIMITS)
    with pytest.raises(InvalidSpec, match="not trusted"):
        await store.stat("a")
    await store.close()
