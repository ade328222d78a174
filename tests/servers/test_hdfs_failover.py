"""A nameservice of two NameNodes: stores find the active one, and follow when another one takes over."""

from __future__ import annotations

import pytest

from podferry.contract.errors import Unavailable
from podferry.contract.uri import Uri, parse_uri
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig, WriteMode
from podferry.storage.timeouts_and_limits import Limits
from tests.support.hadoop import Hadoop
from tests.support.hadoop_failover import NAMESERVICE, HighAvailability, highly_available

LIMITS = Limits(retries=1, retry_seconds=5)
SCHEMES = ("hdfs", "webhdfs")


@pytest.fixture(scope="module")
def nameservice(folders):
    with highly_available(folders.mktemp("nameservice")) as found:
        yield found


def config(found: Hadoop, way: str) -> StoreConfig:
    """The site files as a pod or as a machine has them."""
    if way == "HADOOP_CONF_DIR":
        return StoreConfig(credentials={way: str(found.configuration)})
    names = ("core-site.xml", "hdfs-site.xml")
    return StoreConfig(credentials={name: (found.configuration / name).read_text() for name in names})


@pytest.mark.parametrize("way", ["HADOOP_CONF_DIR", "Secret"])
async def test_stores_follow_a_failover(nameservice: tuple[Hadoop, HighAvailability], way: str) -> None:
    found, switch = nameservice
    stores = [open_store(Uri(scheme, NAMESERVICE, way), config(found, way)) for scheme in SCHEMES]
    for store in stores:
        await store.write(f"before {store.uri.scheme}", b"1", WriteMode.CREATE)
    switch.fail_over(*sorted(("nn1", "nn2"), key=lambda node: node != active(found)))
    for store in stores:
        assert bytes(await store.read(f"before {store.uri.scheme}")) == b"1"
        await store.write(f"after {store.uri.scheme}", b"2", WriteMode.CREATE)
        assert len([entry async for entry in store.entries()]) == 3 + stores.index(store)
    for store in stores:
        await store.close()


def active(found: Hadoop) -> str:
    """The NameNode that is active."""
    main = "org.apache.hadoop.hdfs.tools.DFSHAAdmin"
    return next(node for node in ("nn1", "nn2") if "active" in found.run(main, "-getServiceState", node))


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_name_node_in_standby_is_named(
    nameservice: tuple[Hadoop, HighAvailability], scheme: str
) -> None:
    found, _ = nameservice
    standby = "nn2" if active(found) == "nn1" else "nn1"
    kind = "rpc" if scheme == "hdfs" else "http"
    address = found.properties[f"dfs.namenode.{kind}-address.{NAMESERVICE}.{standby}"]
    store = open_store(parse_uri(f"{scheme}://{address}/x"), StoreConfig(), LIMITS)
    with pytest.raises(Unavailable, match=r"in standby .*StandbyException.*HADOOP_CONF_DIR"):
        await store.stat("a")
    await store.close()


async def test_a_mount_table(nameservice: tuple[Hadoop, HighAvailability]) -> None:
    found, _ = nameservice
    link = f"fs.viewfs.mounttable.all.link./data</name><value>hdfs://{NAMESERVICE}/viewed"
    site = (found.configuration / "core-site.xml").read_text()
    text = site.replace("</configuration>", f"<property><name>{link}</value></property></configuration>")
    fallback = (
        f"<property><name>fs.viewfs.mounttable.all.linkFallback</name><value>hdfs://{NAMESERVICE}/</value>"
    )
    text = text.replace("</configuration>", f"{fallback}</property></configuration>")
    given = StoreConfig(credentials={"hdfs-site.xml": text})
    store = open_store(parse_uri("viewfs://all/data"), given)
    await store.write("a/b", b"1")
    assert [entry.name async for entry in store.entries()] == ["a/b"]
    other = open_store(parse_uri(f"hdfs://{NAMESERVICE}/viewed"), given)
    assert [entry.name async for entry in other.entries()] == ["a/b"]
    await store.close()
    await other.close()
