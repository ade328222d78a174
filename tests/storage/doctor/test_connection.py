"""The way to a server, examined by whole diagnoses."""

import pytest
from aiohttp import web

from podferry.storage.doctor.finding import Outcome
from podferry.storage.network.settings import read_network
from podferry.storage.store import StoreConfig
from tests.support.declared import KEYS
from tests.support.doctor_site import findings
from tests.support.reserved_port import reserved_port


async def test_the_certificate_of_a_private_ca(moto_over_tls, private_ca, tmp_path):
    config = StoreConfig(endpoint=f"https://127.0.0.1:{moto_over_tls}", credentials=KEYS)
    found = await findings("s3://bucket/x", config)
    assert list(found)[-1] == "TLS"
    assert "certificate is not valid" in found["TLS"].measured
    assert "`ca`" in found["TLS"].remedy
    bundle = tmp_path / "ca.pem"
    bundle.write_text(private_ca.pem)
    trusting = StoreConfig(
        endpoint=config.endpoint, credentials=KEYS, network=read_network({"AWS_CA_BUNDLE": str(bundle)})
    )
    found = await findings("s3://bucket/x", trusting)
    assert found["TLS"].outcome is Outcome.OK
    assert "certificate valid until" in found["TLS"].measured


async def test_a_server_whose_clock_is_another(answering):
    async def late(request):
        return web.Response(status=403, headers={"Date": "Mon, 01 Jan 2024 00:00:00 GMT"})

    found = await findings("s3://bucket/x", StoreConfig(endpoint=await answering(late), credentials=KEYS))
    assert found["clock"].outcome is Outcome.FAILED
    assert "ahead of the server's" in found["clock"].measured


@pytest.mark.parametrize(
    ("uri", "last", "words"),
    [
        ("s3://b/x", "name", "no-such-host.invalid cannot be resolved"),
        ("s4://b/x", "engine", "Did you mean 's3'"),
        ("sftp://no-such-host.invalid/x", "name", "cannot be resolved"),
    ],
)
async def test_what_is_wrong_comes_last(uri, last, words):
    config = StoreConfig(
        endpoint="http://no-such-host.invalid" if uri.startswith("s3") else None, credentials=KEYS
    )
    found = await findings(uri, config)
    assert list(found)[-1] == last
    assert found[last].outcome is Outcome.FAILED
    assert words in f"{found[last].measured} {found[last].remedy}"


async def test_a_server_without_tls(answering):
    async def answer(request):
        return web.Response()

    endpoint = (await answering(answer)).replace("http://", "https://")
    found = await findings("s3://b/x", StoreConfig(endpoint=endpoint, credentials=KEYS))
    assert list(found)[-1] == "TLS"
    assert "the answer is not TLS" in found["TLS"].measured
    assert "http:// in the endpoint" in found["TLS"].remedy


async def test_a_closed_port():
    with reserved_port() as port:
        found = await findings("s3://b/x", StoreConfig(endpoint=f"http://127.0.0.1:{port}", credentials=KEYS))
    assert list(found) == ["engine", "name", "connection"]
    assert "Connection refused" in found["connection"].measured
