"""A private CA and a proxy for every engine and path of requests, on real TLS servers and a real proxy."""

import asyncio
import os
import sys

import msgspec
import pytest
from aiohttp import web

from podferry.contract.errors import InvalidSpec, Unavailable
from podferry.contract.spec import Access
from podferry.contract.uri import parse_uri
from podferry.sidecar.config.store_access import store_config
from podferry.storage.factory import open_store
from podferry.storage.network.settings import read_network
from podferry.storage.store import StoreConfig
from tests.support.connect_proxy import tls_relay
from tests.support.store_calls import KEYS, PART, listed

AZURE = {"AZURE_STORAGE_ACCOUNT_NAME": "account", "AZURE_SKIP_SIGNATURE": "true"}
BLOBS = """<?xml version="1.0"?><EnumerationResults><Blobs><Blob><Name>digits/a</Name><Properties>
<Last-Modified>Mon, 02 Nov 2026 10:00:00 GMT</Last-Modified><Etag>0x1</Etag><Content-Length>1</Content-Length>
<Content-Type>text/plain</Content-Type></Properties></Blob></Blobs><NextMarker /></EnumerationResults>"""


async def blobs(request):
    return web.Response(text=BLOBS, content_type="application/xml")


async def index(request):
    if request.path.endswith("/a"):
        return web.Response(body=b"x", headers={"Accept-Ranges": "bytes"})
    return web.Response(text='<a href="a">a</a>', content_type="text/html")


@pytest.fixture(params=["s3", "az", "http"])
async def served(request, answering, private_ca, moto_over_tls, s3):
    """A store over TLS: its port, and its URI and configuration at an address."""
    if request.param == "s3":
        s3.put_object(Bucket="bucket", Key="digits/a", Body=b"x")
        return moto_over_tls, lambda at: (
            "s3://bucket/digits",
            StoreConfig(f"https://{at}", credentials=KEYS),
        )
    handler = blobs if request.param == "az" else index
    endpoint = await answering(handler, private_ca.server_context("store", "127.0.0.1"))
    port = int(endpoint.rpartition(":")[2])
    if request.param == "az":
        return port, lambda at: ("az://box/digits", StoreConfig(f"https://{at}", credentials=AZURE))
    return port, lambda at: (f"https://{at}/digits", StoreConfig())


def opened(made, network, quick):
    uri, config = made
    return open_store(parse_uri(uri), msgspec.structs.replace(config, network=network), quick)


async def names(store):
    try:
        return await listed(store)
    finally:
        await store.close()


async def test_a_private_ca_is_trusted_and_named_if_it_is_not(served, private_ca, quick, tmp_path):
    port, at = served
    bundle = tmp_path / "ca.pem"
    bundle.write_text(private_ca.pem)
    for variable in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PODFERRY_CA_BUNDLE"):
        network = read_network({variable: str(bundle)})
        assert await names(opened(at(f"127.0.0.1:{port}"), network, quick)) == ["a"]
    with pytest.raises(InvalidSpec) as caught:
        await names(opened(at(f"127.0.0.1:{port}"), read_network({}), quick))
    text = str(caught.value)
    assert "not trusted" in text
    assert "AWS_CA_BUNDLE or SSL_CERT_FILE" in text
    assert "trusted: the system" in text


async def test_the_key_ca_of_a_secret_is_trusted(served, private_ca, quick, tmp_path):
    port, at = served
    (tmp_path / "ca").write_text(private_ca.pem)
    network = store_config(Access(), tmp_path).network
    assert network.ca.names == ("the key 'ca' of the Secret",)
    assert await names(opened(at(f"127.0.0.1:{port}"), network, quick)) == ["a"]


async def test_requests_go_through_the_proxy_unless_no_proxy_names_the_host(served, private_ca, proxy, quick):
    port, at = served
    proxy.ports[f"store:{port}"] = port
    variables = {"HTTPS_PROXY": proxy.url, "PODFERRY_CA_BUNDLE": private_ca.pem}
    store = opened(at(f"store:{port}"), read_network(variables), quick)
    assert await names(store) == ["a"]
    assert set(proxy.requests) == {f"CONNECT store:{port}"}
    proxy.requests.clear()
    with pytest.raises(Unavailable):  # nobody here resolves the name
        await names(opened(at(f"store:{port}"), read_network({**variables, "NO_PROXY": "store"}), quick))
    assert await names(opened(at(f"127.0.0.1:{port}"), read_network(variables), quick)) == ["a"]
    assert proxy.requests == []


async def test_the_pools_own_requests_go_through_the_proxy(served, private_ca, proxy, quick):
    port, at = served
    proxy.ports[f"store:{port}"] = port
    network = read_network({"HTTPS_PROXY": proxy.url, "PODFERRY_CA_BUNDLE": private_ca.pem})
    store = opened(at(f"store:{port}"), network, quick)
    origin = store.request_builder.origin
    assert (origin.host, str(origin.proxy), origin.ca) == ("store", proxy.url, network.ca.pem)
    await store.close()


async def test_multipart_uploads_go_through_the_proxy(moto_over_tls, private_ca, proxy, quick, fresh_s3):
    proxy.ports[f"store:{moto_over_tls}"] = moto_over_tls
    network = read_network({"HTTPS_PROXY": proxy.url, "PODFERRY_CA_BUNDLE": private_ca.pem})
    config = StoreConfig(f"https://store:{moto_over_tls}", credentials=KEYS, network=network)
    store = open_store(fresh_s3, config, quick)
    upload = await store.multipart.begin("large", PART)
    await store.multipart.abort("large", upload)
    await store.close()
    assert set(proxy.requests) == {f"CONNECT store:{moto_over_tls}"}


async def test_plain_http_goes_through_the_proxy_too(answering, proxy, quick):
    port = int((await answering(index)).rpartition(":")[2])
    proxy.ports[f"store:{port}"] = port
    config = StoreConfig(network=read_network({"http_proxy": proxy.url}))
    store = open_store(parse_uri(f"http://store:{port}/digits"), config, quick)
    assert await names(store) == ["a"]
    assert proxy.requests
    assert all(line.split(" ")[1].startswith(f"http://store:{port}/") for line in proxy.requests)


@pytest.mark.parametrize(
    ("password", "refusal", "words"), [("u:p", None, "password"), (None, 403, "does not connect")]
)
async def test_a_proxy_that_refuses_is_named(served, proxy, quick, password, refusal, words):
    port, at = served
    proxy.password, proxy.refusal = password, refusal
    network = read_network({"HTTPS_PROXY": proxy.url.replace("//", "//u:wrong@")})
    with pytest.raises((InvalidSpec, Unavailable)) as caught:
        await names(opened(at(f"store:{port}"), network, quick))
    assert words in str(caught.value)
    assert f"proxy {proxy.url}" in str(caught.value)
    assert "wrong" not in str(caught.value)


async def test_a_password_is_sent_to_the_proxy(served, private_ca, proxy, quick):
    port, at = served
    proxy.password, proxy.ports = "user:pass word", {f"store:{port}": port}
    url = proxy.url.replace("//", "//user:pass%20word@")
    network = read_network({"HTTPS_PROXY": url, "PODFERRY_CA_BUNDLE": private_ca.pem})
    assert await names(opened(at(f"store:{port}"), network, quick)) == ["a"]


async def test_a_metadata_service_is_never_reached_through_the_proxy(
    answering, proxy, private_ca, quick, moto_over_tls, s3, tmp_path
):
    """Container credentials come from a service at 127.0.0.1; the store is behind the proxy."""
    asked = []

    async def credentials(request):
        asked.append(request.path)
        return web.json_response(
            {"AccessKeyId": "a", "SecretAccessKey": "b", "Token": "c", "Expiration": "2099-01-01T00:00:00Z"}
        )

    proxy.ports[f"store:{moto_over_tls}"] = moto_over_tls
    (tmp_path / "token").write_text("t")
    variables = {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{await answering(credentials)}/get",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(tmp_path / "token"),
    }
    network = read_network({"ALL_PROXY": proxy.url, "PODFERRY_CA_BUNDLE": private_ca.pem})
    config = StoreConfig(f"https://store:{moto_over_tls}", credentials=variables, network=network)
    s3.put_object(Bucket="bucket", Key="meta/a", Body=b"x")
    store = open_store(parse_uri("s3://bucket/meta"), config, quick)
    assert await names(store) == ["a"]
    assert asked == ["/get"]
    assert set(proxy.requests) == {f"CONNECT store:{moto_over_tls}"}


STS = """<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>
<AccessKeyId>key-of-the-role</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>
<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult>
</AssumeRoleWithWebIdentityResponse>"""


async def test_the_token_service_is_reached_with_the_ca_and_through_the_proxy(
    answering, proxy, private_ca, quick, moto_over_tls, s3, tmp_path
):
    asked = []

    async def give(request):
        asked.append(request.query.get("Action") or (await request.post())["Action"])
        return web.Response(text=STS, content_type="text/xml")

    service = (await answering(give, private_ca.server_context("sts"))).rpartition(":")[2]
    proxy.ports = {f"store:{moto_over_tls}": moto_over_tls, f"sts:{service}": int(service)}
    (tmp_path / "token").write_text("t")
    variables = {
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"),
        "AWS_ROLE_ARN": "arn:aws:iam::111122223333:role/r",
        "AWS_ENDPOINT_URL_STS": f"https://sts:{service}",
    }
    network = read_network({"HTTPS_PROXY": proxy.url, "AWS_CA_BUNDLE": private_ca.pem})
    config = StoreConfig(f"https://store:{moto_over_tls}", credentials=variables, network=network)
    s3.put_object(Bucket="bucket", Key="role/a", Body=b"x")
    assert await names(open_store(parse_uri("s3://bucket/role"), config, quick)) == ["a"]
    assert asked == ["AssumeRoleWithWebIdentity"]
    assert set(proxy.requests) == {f"CONNECT {target}" for target in proxy.ports}


async def test_a_proxy_over_tls(moto_over_tls, private_ca, proxy, quick, fresh_s3):
    """TLS within TLS: the engine and our own signed requests; the pool leaves it to the engine."""
    proxy.ports[f"store:{moto_over_tls}"] = moto_over_tls
    async with tls_relay(private_ca.server_context("127.0.0.1"), proxy.port) as port:
        network = read_network({"HTTPS_PROXY": f"https://127.0.0.1:{port}", "AWS_CA_BUNDLE": private_ca.pem})
        config = StoreConfig(f"https://store:{moto_over_tls}", credentials=KEYS, network=network)
        store = open_store(fresh_s3, config, quick)
        assert store.request_builder is None
        assert await listed(store) == []
        assert await store.multipart.begin("large", PART)
        await store.close()
    assert proxy.requests == [f"CONNECT store:{moto_over_tls}"] * 2


async def test_a_prefetch_in_processes_of_its_own(moto_over_tls, private_ca, proxy, s3, tmp_path):
    """`podferry dataset get` with the variables that other programs read, too."""
    for number in range(20):
        s3.put_object(Bucket="bucket", Key=f"many/{number}", Body=b"x" * number)
    (tmp_path / "ca.pem").write_text(private_ca.pem)
    proxy.ports[f"store:{moto_over_tls}"] = moto_over_tls
    variables = {"SSL_CERT_FILE": str(tmp_path / "ca.pem"), "https_proxy": proxy.url, **KEYS}
    words = ["dataset", "get", "s3://bucket/many", str(tmp_path / "got")]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "podferry.cli.main", *words, "--endpoint", f"https://store:{moto_over_tls}"),
        env={**os.environ, **variables},
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    assert len(list((tmp_path / "got").iterdir())) == 20
    assert set(proxy.requests) == {f"CONNECT store:{moto_over_tls}"}
    assert len(proxy.requests) > 2  # the pool's, beyond that of the listing


def test_a_secrets_proxies_replace_those_of_the_environment_and_bundles_add_up(private_ca, tmp_path):
    environ = {"HTTPS_PROXY": "http://one:1", "NO_PROXY": "a", "AWS_CA_BUNDLE": private_ca.pem}
    found = read_network(environ, {"HTTPS_PROXY": "two:2", "ca": private_ca.pem})
    assert str(found.proxies.proxy_for("https://x")) == "http://two:2"
    assert found.proxies.excluded == ()
    assert found.ca.names == ("the key 'ca' of the Secret", "AWS_CA_BUNDLE")
    assert found.ca.pem.count("BEGIN") == 1
    assert read_network(environ, {"ca": private_ca.pem}).proxies.excluded == ("a",)
