"""TLS that fails, on real servers: what each engine reports, in the same words."""

import ssl
from datetime import timedelta

import pytest
from aiohttp import web

from podferry.contract.errors import InvalidSpec, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.errors.connection_failure import openssl_failure, rustls_failure
from podferry.storage.factory import open_store
from podferry.storage.network.settings import read_network
from podferry.storage.store import StoreConfig
from tests.support.private_ca import PrivateCa, self_signed_context
from tests.support.store_calls import KEYS, PART, listed


async def answer(request):
    return web.Response(text="<ListBucketResult></ListBucketResult>", content_type="application/xml")


async def call(kind, endpoint, network, quick):
    """One call through obstore's client, our own signed requests, or a web server's pages."""
    if kind == "web":
        store = open_store(parse_uri(f"{endpoint}/x"), StoreConfig(network=network), quick)
    else:
        config = StoreConfig(endpoint=endpoint, credentials=KEYS, network=network)
        store = open_store(parse_uri("s3://bucket/x"), config, quick)
    try:
        calls = {"own": lambda: store.multipart.begin("a", PART), "obstore": lambda: store.stat("a")}
        await calls.get(kind, lambda: listed(store))()
    finally:
        await store.close()


@pytest.fixture(params=["obstore", "own", "web"])
def caught(request, answering, private_ca, quick):
    """The error of a call to a server with this certificate."""

    async def run(context, error, scheme="https", ca=private_ca.pem):
        port = (await answering(answer, context)).rpartition(":")[2]
        network = read_network({"AWS_CA_BUNDLE": ca} if ca else {})
        with pytest.raises(error) as found:
            await call(request.param, f"{scheme}://127.0.0.1:{port}", network, quick)
        return str(found.value)

    return run


async def test_an_unknown_issuer(caught, private_ca):
    text = await caught(private_ca.server_context("127.0.0.1"), InvalidSpec, ca=PrivateCa().pem)
    assert "certificate of the server" in text
    assert "is not trusted" in text
    assert "trusted: the system, AWS_CA_BUNDLE" in text
    assert "Set AWS_CA_BUNDLE or SSL_CERT_FILE" in text


async def test_another_name(caught, private_ca):
    text = await caught(private_ca.server_context("other.test"), InvalidSpec)
    assert "is for another name" in text


async def test_an_expired_certificate_may_be_renewed(caught, private_ca):
    context = private_ca.server_context("127.0.0.1", lifetime=timedelta(hours=-1))
    text = await caught(context, Unavailable)
    assert "is not valid at this time" in text
    assert "expired" in text


async def test_tls_on_a_plain_port(caught):
    text = await caught(None, InvalidSpec)
    assert "does not use TLS" in text
    assert "Write http:// instead of https://" in text


async def test_a_store_that_answered_before_has_an_outage(answering, private_ca, moto_over_tls, quick, s3):
    """A load balancer may have another certificate for a while: nothing is given up for that."""
    network = read_network({"AWS_CA_BUNDLE": private_ca.pem})
    config = StoreConfig(f"https://127.0.0.1:{moto_over_tls}", credentials=KEYS, network=network)
    store = open_store(parse_uri("s3://bucket/never"), config, quick)
    assert await listed(store) == []
    store._bucket.exists = True
    other = open_store(parse_uri("s3://bucket/never"), StoreConfig(config.endpoint, credentials=KEYS), quick)
    store._bucket.store = other._bucket.store
    with pytest.raises(Unavailable, match="is not trusted"):
        await store.stat("a")


async def test_a_server_with_the_certificate_of_its_own_authority(answering, quick):
    """A frequent mistake with servers of one's own: OpenSSL accepts it, obstore does not."""
    context, pem = self_signed_context("127.0.0.1")
    port = (await answering(answer, context)).rpartition(":")[2]
    network = read_network({"AWS_CA_BUNDLE": pem})
    with pytest.raises(InvalidSpec, match="presents the certificate of an authority"):
        await call("obstore", f"https://127.0.0.1:{port}", network, quick)


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        ("InvalidCertificate(\n  UnknownIssuer,\n)", "untrusted", "unknown issuer"),
        ("InvalidCertificate(Other(OtherError(CaUsedAsEndEntity)))", "authority", "CA:TRUE"),
        (
            'InvalidCertificate(NotValidForNameContext { presented: ["DnsName(\\"a.b\\")"] })',
            "wrong name",
            "a.b",
        ),
        ("InvalidCertificate(NotValidYet)", "certificate time", "not yet valid"),
        ("InvalidCertificate(UnhandledCriticalExtension)", "untrusted", "UnhandledCriticalExtension"),
        ("Connect, ProxyAuthRequired,", "proxy credentials", "407"),
    ],
)
def test_rustls_texts(text, kind, reason):
    failure = rustls_failure(text)
    assert failure.kind == kind
    assert reason in failure.reason


def test_other_failures_have_no_name_here():
    assert rustls_failure("Connect, Os { code: 111 }") is None
    assert openssl_failure(ssl.SSLError(1, "handshake failure")) is None
    assert openssl_failure(ssl.SSLCertVerificationError("made by a library")) is None
