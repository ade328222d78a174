"""Requests to S3, with the current keys."""

import asyncio

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.errors import CredentialsMissing
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.factory import open_store
from podferry.storage.network.settings import read_network
from podferry.storage.request_builder import Origin
from podferry.storage.s3 import get_requests as module
from podferry.storage.s3.credentials import S3CredentialsProvider
from podferry.storage.s3.endpoint import s3_access
from podferry.storage.s3.get_requests import get_builder_for
from podferry.storage.s3.sigv4 import S3Credentials
from podferry.storage.store import StoreConfig
from tests.support.request_builder_contract import *  # noqa: F403

KEYS = {"AWS_ACCESS_KEY_ID": "key-of-tests", "AWS_SECRET_ACCESS_KEY": "secret-of-tests"}
BOS_KEYS = {"BOS_ACCESS_KEY_ID": "key-of-tests", "BOS_SECRET_ACCESS_KEY": "secret-of-tests"}
ENDPOINT = "http://127.0.0.1:9000"
TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=40)
PARTS = ["a b", "+", "%", "%2B", "~", "", "ü", "日本", "&=", "."]
KEY = st.one_of(TEXT, st.lists(st.sampled_from(PARTS)).map("/".join))


def lines_of(head):
    """The first line of a request, and its header lines by lower-case name."""
    first, *lines = head.decode("ascii").removesuffix("\r\n\r\n").split("\r\n")
    pairs = [line.split(": ", 1) for line in lines]
    assert len({name.lower() for name, _ in pairs}) == len(pairs)
    return first, {name.lower(): value for name, value in pairs}


def builder_for(
    key="", endpoint=ENDPOINT, credentials=KEYS, reload_credentials=None, scheme="s3", **variables
):
    config = StoreConfig(
        endpoint=endpoint, credentials={**credentials, **variables}, reload_credentials=reload_credentials
    )
    return get_builder_for(s3_access(Uri(scheme, "bucket", key), config))


async def prepared(*arguments, **options):
    builder = builder_for(*arguments, **options)
    await builder.prepare([])
    return builder


@given(key=KEY)
def test_keys_are_sent_encoded_once(key):
    builder = builder_for(key, credentials={"AWS_SKIP_SIGNATURE": "true"})
    first, _ = lines_of(builder.build(Entry("n~+%", 3), 0, 3))
    method, path, version = first.split(" ")
    assert (method, version) == ("GET", "HTTP/1.1")
    assert module.quote(key, safe="/~") in path
    assert path.endswith("/n~%2B%25")


async def test_a_complete_object_is_requested_without_a_range_and_with_its_checksum():
    builder = await prepared("run")
    first, sent = lines_of(builder.build(Entry("a/b", 10, '"tag"'), 0, 10))
    assert first == "GET /bucket/run/a/b HTTP/1.1"
    assert sent["host"] == "127.0.0.1:9000"
    assert sent["if-match"] == '"tag"'
    assert sent["x-amz-checksum-mode"] == "ENABLED"
    assert "SignedHeaders=host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date" in sent["authorization"]
    assert "range" not in sent
    first, sent = lines_of(builder.build(Entry("a/b", 10, '"tag"'), 0, 10, "HEAD"))
    assert first == "HEAD /bucket/run/a/b HTTP/1.1"
    assert sent["x-amz-checksum-mode"] == "ENABLED"
    _, sent = lines_of(builder.build(Entry("empty", 0), 0, 0))
    assert not {"range", "if-match"} & set(sent)


@pytest.mark.parametrize(("start", "length", "stated"), [(0, 9, "0-8"), (1, 9, "1-9"), (9, 1, "9-9")])
async def test_a_range_is_requested_without_a_checksum(start, length, stated):
    builder = await prepared()
    _, sent = lines_of(builder.build(Entry("a", 10), start, length))
    assert sent["range"] == f"bytes={stated}"
    assert "x-amz-checksum-mode" not in sent


@pytest.mark.parametrize("tag", ["", "no-quotes", 'W/"weak"', '"a"\r\nEvil: 1', '"ü"'])
async def test_only_strong_tags_are_sent(tag):
    builder = await prepared()
    _, sent = lines_of(builder.build(Entry("a", 10, tag), 0, 10))
    assert "if-match" not in sent
    assert "evil" not in sent


async def test_anonymous_requests_are_not_signed():
    builder = await prepared(credentials={"AWS_SKIP_SIGNATURE": "true"})
    _, sent = lines_of(builder.build(Entry("a", 10, '"t"'), 0, 10))
    assert set(sent) == {"host", "user-agent", "if-match", "x-amz-checksum-mode"}


def test_virtual_hosted_buckets_are_in_the_host_name():
    variables = {"AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true", "AWS_SKIP_SIGNATURE": "true"}
    builder = builder_for("run", "https://s3.example.com", variables)
    first, sent = lines_of(builder.build(Entry("a", 1), 0, 1))
    assert (first, sent["host"]) == ("GET /run/a HTTP/1.1", "bucket.s3.example.com")
    assert builder.origin == Origin("bucket.s3.example.com", 443, tls=True)


def test_baidus_store_has_its_own_endpoint():
    builder = builder_for(
        endpoint=None, scheme="bos", credentials=BOS_KEYS, BOS_REGION="gz", AWS_REGION="other"
    )
    assert builder.origin == Origin("s3.gz.bcebos.com", 443, tls=True)


async def test_new_keys_sign_later_requests(monkeypatch):
    monkeypatch.setattr("podferry.storage.credentials.refresh.REFRESH_SECONDS", 0)
    credentials = dict(KEYS)
    builder = await prepared(reload_credentials=lambda: credentials)
    old = lines_of(builder.build(Entry("a", 1), 0, 1))[1]["authorization"]
    credentials = {**KEYS, "AWS_ACCESS_KEY_ID": "newer", "AWS_SESSION_TOKEN": "token"}
    assert lines_of(builder.build(Entry("a", 1), 0, 1))[1]["authorization"].startswith(old[:40])
    await builder.prepare([])
    _, sent = lines_of(builder.build(Entry("a", 1), 0, 1))
    assert "Credential=newer/" in sent["authorization"]
    assert sent["x-amz-security-token"] == "token"


async def test_keys_are_not_read_for_every_batch():
    read = []
    builder = builder_for(reload_credentials=lambda: read.append(1) or KEYS)
    await asyncio.gather(builder.prepare([]))
    await builder.prepare([])
    assert len(read) == 1


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN"])
async def test_no_key_injects_header_lines(name):
    builder = builder_for(**{name: "a\r\nEvil: 1"})
    with pytest.raises(CredentialsMissing, match="not valid in a header"):
        await builder.prepare([])
    with pytest.raises(CredentialsMissing, match="not signed"):
        builder.build(Entry("a", 1), 0, 1)


def test_unprepared_requests_are_not_sent_unsigned():
    with pytest.raises(CredentialsMissing, match="not signed"):
        builder_for().build(Entry("a", 1), 0, 1)


@pytest.fixture
def container(monkeypatch):
    """Credentials of a container's service, in the environment of the process and of the store."""
    credentials = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:1/x"}
    monkeypatch.setattr("os.environ", dict(credentials))
    answers = []

    def keys(_):
        if isinstance(answers[0], Exception):
            raise answers[0]
        return answers[0]

    monkeypatch.setattr(S3CredentialsProvider, "load", keys)
    monkeypatch.setattr("podferry.storage.credentials.refresh.REFRESH_SECONDS", 0)
    return credentials, answers


async def test_ambient_keys_remain_in_use_if_their_service_fails(container):
    credentials, answers = container
    answers[:] = [CredentialsMissing.of("no response")]
    with pytest.raises(CredentialsMissing):
        await prepared(credentials=credentials)
    answers[:] = [S3Credentials("first", "secret", "token")]
    builder = await prepared(credentials=credentials)
    answers[:] = [CredentialsMissing.of("no response")]
    await builder.prepare([])
    _, sent = lines_of(builder.build(Entry("a", 1), 0, 1))
    assert "Credential=first/" in sent["authorization"]


def test_only_the_engine_sends_requests_if_awscrt_would_find_other_keys(container):
    credentials, _ = container
    assert builder_for(credentials=credentials) is not None
    assert (
        builder_for(credentials={**credentials, "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:2/y"})
        is None
    )


@pytest.fixture
async def store(config, fresh_s3, quick):
    store = open_store(fresh_s3, config, quick)
    yield store
    await store.close()


def test_behind_a_proxy_the_credentials_of_the_process_do_not_matter(monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "unknown")
    monkeypatch.setenv("HOME", "/nonexistent")
    network = read_network({"HTTP_PROXY": "http://127.0.0.1:1"})
    config = StoreConfig("http://store.example", credentials={"AWS_REGION": "here"}, network=network)
    assert get_builder_for(s3_access(Uri("s3", "bucket"), config)) is None


async def test_both_engines_build_the_same_requests(config, fresh_s3, store):
    other = open_store(msgspec.structs.replace(fresh_s3, options=(("engine", "fsspec"),)), config)
    (first, sent), (first_of_other, sent_by_other) = [
        lines_of(requests.build(Entry("a b", 10, '"t"'), 0, 5))
        for requests in (store.request_builder, other.request_builder)
        if await requests.prepare([]) is None
    ]
    assert first == first_of_other
    assert sent["authorization"].split(", Sig")[0] == sent_by_other["authorization"].split(", Sig")[0]
    await other.close()
