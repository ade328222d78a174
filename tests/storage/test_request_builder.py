"""Request addresses, proxies and certificates."""

import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.manifest import Entry
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.network.settings import read_network
from podferry.storage.request_builder import Origin, if_match_line, range_line, request_address


@pytest.mark.parametrize(
    ("url", "origin", "host", "path"),
    [
        ("http://127.0.0.1:9000/bucket", Origin("127.0.0.1", 9000, tls=False), "127.0.0.1:9000", "/bucket"),
        ("https://S3.example.com", Origin("s3.example.com", 443, tls=True), "s3.example.com", ""),
        ("http://[::1]:80/a/b/", Origin("::1", 80, tls=False), "[::1]", "/a/b"),
        ("https://[::1]:80/", Origin("::1", 80, tls=True), "[::1]:80", ""),
        ("http://a_b.minio:80", Origin("a_b.minio", 80, tls=False), "a_b.minio", ""),
    ],
)
def test_addresses_are_parsed(url, origin, host, path):
    address = request_address(url)
    assert (address.origin, address.host, address.path) == (origin, host, path)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/",
        "http://user:password@host/",
        "http:///bucket",
        "http://münchen.example/",
        "http://host/a?b=c",
        "http://host/a#b",
        "http://ho st/",
        "http://host/büchse",
        "http://host/a HTTP/1.1",
    ],
)
def test_the_engine_sends_what_needs_more_than_a_plain_request(url):
    assert request_address(url) is None


@pytest.mark.parametrize(
    ("variables", "url", "direct"),
    [
        ({}, "https://s3", True),
        ({"HTTPS_PROXY": "http://proxy"}, "https://s3", True),
        ({"HTTPS_PROXY": "https://proxy"}, "https://s3", False),
        ({"HTTP_PROXY": "http://proxy"}, "http://s3", False),
        ({"HTTP_PROXY": "http://proxy", "NO_PROXY": "s3"}, "http://s3", True),
    ],
)
def test_the_engine_sends_requests_through_other_proxies_than_tunnels(variables, url, direct):
    assert (request_address(url, read_network(variables)) is not None) is direct


def test_a_tunnel_and_a_bundle_are_part_of_the_origin(private_ca):
    network = read_network({"HTTPS_PROXY": "http://proxy:3128", "AWS_CA_BUNDLE": private_ca.pem})
    origin = request_address("https://s3", network).origin
    assert (origin.proxy.url, origin.ca) == ("http://proxy:3128", private_ca.pem)
    assert origin.ssl_context().verify_mode is ssl.CERT_REQUIRED
    assert Origin("h", 80, tls=False).ssl_context() is None


@given(size=st.integers(1, 1 << 50), data=st.data())
def test_range_headers_have_both_ends(size, data):
    start = data.draw(st.integers(0, size - 1))
    length = data.draw(st.integers(1, size - start))
    line = range_line(Entry("a", size), start, length)
    if (start, length) == (0, size):
        assert line == ""
        return
    first, _, last = line.removeprefix("Range: bytes=").removesuffix("\r\n").partition("-")
    assert (int(first), int(last) + 1) == (start, start + length)


@given(tag=st.text(max_size=20) | st.text(max_size=20).map('"{}"'.format))
def test_no_tag_injects_header_lines(tag):
    line = if_match_line(tag)
    assert line in ("", f"If-Match: {tag}\r\n")
    assert line.count("\r") == line.count("\n") == bool(line)
    assert line.isascii()


@pytest.mark.parametrize("uri", ["file:///tmp/x", "memory://b/x", "memory://b/x?engine=fsspec"])
async def test_stores_without_http_have_no_request_builder(uri):
    store = open_store(parse_uri(uri))
    assert store.request_builder is None
    await store.close()
