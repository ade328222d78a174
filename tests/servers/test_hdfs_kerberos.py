"""HDFS with Kerberos: a keytab, a ticket, none, and a client that knows nothing of Kerberos."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from podferry.contract.errors import AccessDenied, InvalidSpec, Unavailable
from podferry.contract.uri import Uri
from podferry.storage.credentials.sources import config_from_directory
from podferry.storage.factory import open_store
from podferry.storage.hdfs import process_identity
from podferry.storage.store import Store, StoreConfig
from podferry.storage.timeouts_and_limits import Limits
from tests.support.hadoop import Hadoop, hadoop
from tests.support.kerberos import REALM, Realm, realm
from tests.support.request_builder_contract import Client

LIMITS = Limits(retries=1, retry_seconds=5)


@pytest.fixture(scope="module")
def kerberos(folders) -> Iterator[Realm]:
    with realm(folders.mktemp("realm"), ("hdfs/localhost", "HTTP/localhost", "alice")) as found:
        yield found


@pytest.fixture(scope="module")
def secured(folders, kerberos: Realm) -> Iterator[Hadoop]:
    hdfs, web = f"hdfs/localhost@{REALM}", f"HTTP/localhost@{REALM}"
    keytab = str(kerberos.keytab("hdfs"))
    more = {
        "hadoop.security.authentication": "kerberos",
        "dfs.block.access.token.enable": "true",
        "dfs.data.transfer.protection": "authentication",
        "ignore.secure.ports.for.testing": "true",
        "dfs.namenode.kerberos.principal": hdfs,
        "dfs.namenode.keytab.file": keytab,
        "dfs.datanode.kerberos.principal": hdfs,
        "dfs.datanode.keytab.file": keytab,
        "dfs.web.authentication.kerberos.principal": web,
        "dfs.web.authentication.kerberos.keytab": str(kerberos.keytab("HTTP")),
        "hadoop.http.authentication.type": "kerberos",
        "hadoop.http.authentication.kerberos.principal": web,
        "hadoop.http.authentication.kerberos.keytab": str(kerberos.keytab("HTTP")),
    }
    java = (f"-Djava.security.krb5.conf={kerberos.configuration}",)
    identity = {"kerberos_principal": hdfs, "kerberos_keytab": keytab}
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("KRB5_CONFIG", str(kerberos.configuration))
        with hadoop(folders.mktemp("secured"), more, java, "localhost", identity) as found:
            yield found


@pytest.fixture(autouse=True)
def own_identity(monkeypatch: pytest.MonkeyPatch, kerberos: Realm, tmp_path: Path) -> None:
    """The identity of the process, for one test."""
    monkeypatch.setattr(process_identity, "_used", {})
    monkeypatch.setenv("KRB5_CONFIG", str(kerberos.configuration))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path}/none")
    monkeypatch.setenv("HADOOP_USER_NAME", "nobody")


def opened(found: Hadoop, **variables: str) -> Store:
    site = {"core-site.xml": (found.configuration / "core-site.xml").read_text()}
    return open_store(Uri("hdfs", found.address, "t"), StoreConfig(credentials={**site, **variables}), LIMITS)


async def round_trip(store: Store, name: str) -> None:
    await store.write(name, name.encode())
    assert bytes(await store.read(name)) == name.encode()
    assert name in [entry.name async for entry in store.entries()]
    await store.close()


async def test_a_keytab(secured: Hadoop, kerberos: Realm) -> None:
    keytab = str(kerberos.keytab("hdfs"))
    await round_trip(opened(secured, HDFS_PRINCIPAL=f"hdfs/localhost@{REALM}", HDFS_KEYTAB=keytab), "keytab")


async def test_a_secret_with_everything(secured: Hadoop, kerberos: Realm, tmp_path: Path) -> None:
    files = {
        "core-site.xml": secured.configuration / "core-site.xml",
        "keytab": kerberos.keytab("hdfs"),
        "krb5.conf": kerberos.configuration,
    }
    for name, file in files.items():
        (tmp_path / name).write_bytes(file.read_bytes())
    (tmp_path / "HDFS_PRINCIPAL").write_text(f"hdfs/localhost@{REALM}\n")
    config = config_from_directory(tmp_path, os.environ)
    await round_trip(open_store(Uri("hdfs", secured.address, "t"), config, LIMITS), "secret")


async def test_another_user_s_keytab_is_that_user(secured: Hadoop, kerberos: Realm) -> None:
    store = opened(secured, HDFS_PRINCIPAL=f"alice@{REALM}", HDFS_KEYTAB=str(kerberos.keytab("alice")))
    with pytest.raises(AccessDenied, match="user=alice, access=WRITE"):
        await store.write("alice", b"1")
    await store.close()


async def test_a_ticket(secured: Hadoop, kerberos: Realm, tmp_path: Path) -> None:
    kerberos.ticket("alice", tmp_path / "cache")
    store = opened(secured, KRB5CCNAME=f"FILE:{tmp_path}/cache")
    with pytest.raises(AccessDenied, match="user=alice, access=WRITE"):
        await store.write("alice", b"1")
    await store.close()


async def test_no_ticket(secured: Hadoop) -> None:
    store = opened(secured)
    with pytest.raises(AccessDenied, match="no valid Kerberos ticket"):
        await store.stat("a")
    await store.close()


async def test_a_wrong_keytab(secured: Hadoop, kerberos: Realm) -> None:
    store = opened(secured, HDFS_PRINCIPAL=f"bob@{REALM}", HDFS_KEYTAB=str(kerberos.keytab("alice")))
    with pytest.raises(AccessDenied, match="no valid Kerberos ticket"):
        await store.stat("a")
    await store.close()


async def test_a_client_without_kerberos(secured: Hadoop) -> None:
    store = open_store(Uri("hdfs", secured.address, "t"), StoreConfig(), LIMITS)
    with pytest.raises(Unavailable, match=r"closes the connection.*cluster with Kerberos"):
        await store.stat("a")
    await store.close()


async def test_webhdfs_names_what_it_cannot(secured: Hadoop) -> None:
    store = open_store(Uri("webhdfs", secured.web, "t"), StoreConfig(), LIMITS)
    with pytest.raises(InvalidSpec, match=r"requires Kerberos by HTTP.*WEBHDFS_DELEGATION_TOKEN"):
        await store.stat("a")
    await store.close()


async def test_webhdfs_with_a_delegation_token(secured: Hadoop, kerberos: Realm, tmp_path: Path) -> None:
    keytab = str(kerberos.keytab("hdfs"))
    await round_trip(opened(secured, HDFS_PRINCIPAL=f"hdfs/localhost@{REALM}", HDFS_KEYTAB=keytab), "token")
    kerberos.ticket("alice", tmp_path / "cache")
    url = f"http://{secured.web}/webhdfs/v1/?op=GETDELEGATIONTOKEN&renewer=alice"
    own = {**os.environ, "KRB5CCNAME": f"FILE:{tmp_path}/cache"}
    got = subprocess.run(  # noqa: ASYNC221 - nothing else runs
        ["curl", "--silent", "--negotiate", "--user", ":", url], env=own, capture_output=True, check=True
    )
    token = json.loads(got.stdout)["Token"]["urlString"]
    uri = Uri("webhdfs", secured.web, "t")
    store = open_store(uri, StoreConfig(credentials={"WEBHDFS_DELEGATION_TOKEN": token}), LIMITS)
    (entry,) = [entry async for entry in store.entries() if entry.name == "token"]
    assert bytes(await store.read("token")) == b"token"
    client = Client(store.request_builder)
    assert (await client.get(entry))[3] == b"token"
    await client.close()
    with pytest.raises(AccessDenied, match="user=alice, access=WRITE"):
        await store.write("c", b"1")
    await store.close()
    other = token[:60] + ("A" if token[60] != "A" else "B") + token[61:]
    wrong = StoreConfig(credentials={"WEBHDFS_DELEGATION_TOKEN": other})
    store = open_store(uri, wrong, LIMITS)
    with pytest.raises(AccessDenied, match="rejects the delegation token"):
        await store.stat("token")
    await store.close()
