"""gs:// with a private CA and through a proxy, on every road."""

from podferry.contract.uri import Uri
from podferry.storage.factory import open_store
from podferry.storage.network.settings import read_network
from podferry.storage.store import StoreConfig, WriteMode
from podferry.storage.timeouts_and_limits import Limits
from tests.support.connect_proxy import connect_proxy, tls_relay
from tests.support.private_ca import PrivateCa
from tests.support.store_calls import PART, listed

LIMITS = Limits(retries=1, retry_seconds=5, part_bytes=PART)


async def test_a_private_ca_and_a_proxy(fake_gcs, fresh, tmp_path):
    ca = PrivateCa()
    (tmp_path / "ca.pem").write_text(ca.pem)
    async with (
        tls_relay(ca.server_context("store"), int(fake_gcs.rpartition(":")[2])) as tls,
        connect_proxy() as proxy,
    ):
        proxy.ports = {"store:443": tls}
        trusted = {"HTTPS_PROXY": proxy.url, "AWS_CA_BUNDLE": str(tmp_path / "ca.pem")}

        held = {"GOOGLE_SKIP_SIGNATURE": "true"}
        config = StoreConfig("https://store", credentials=held, network=read_network(trusted))
        store = open_store(Uri("gs", "bucket", fresh), config, LIMITS)
        await store.write("a", b"0123456789", WriteMode.CREATE)
        upload = await store.multipart.begin("b", PART)
        await store.multipart.complete("b", upload, [await store.multipart.send("b", upload, 1, b"part")])
        assert await listed(store) == ["a", "b"]
        assert bytes(await store.read("b")) == b"part"
        assert store.request_builder.origin.proxy is not None
        await store.close()
        assert set(proxy.requests) == {"CONNECT store:443"}
