"""Request addresses, proxies and certificates."""

import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.manifest import Entry
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.request_builder import Origin, if_match_line, range_line, request_address

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch):
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


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
    ("variables", "direct"),
    [
        ({}, True),
        ({"http_proxy": "http://127.0.0.1:1"}, False),
        ({"HTTP_PROXY": "http://127.0.0.1:1"}, False),
        ({"ALL_PROXY": "http://127.0.0.1:1"}, False),
        ({"https_proxy": "http://127.0.0.1:1"}, True),
        ({"http_proxy": "http://127.0.0.1:1", "NO_PROXY": "other"}, False),
        ({"http_proxy": "http://127.0.0.1:1", "NO_PROXY": "store.local,other"}, True),
        ({"http_proxy": "http://127.0.0.1:1", "no_proxy": "*"}, True),
    ],
)
def test_the_engine_sends_requests_through_a_proxy(variables, direct, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert (request_address("http://s3.store.local/") is not None) is direct


def test_certificates_are_the_systems_or_those_of_a_bundle(tmp_path):
    assert Origin("h", 80, tls=False).ssl_context() is None
    context = Origin("h", 443, tls=True).ssl_context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    with pytest.raises(FileNotFoundError):
        Origin("h", 443, tls=True, ca_bundle=str(tmp_path / "none.pem")).ssl_context()


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
