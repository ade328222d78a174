"""Requests to S3: signed as Amazon's library signs, with the keys of the moment."""

import asyncio

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.errors import CredentialsMissing
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.factory import open_store
from podferry.storage.request_builder import Origin
from podferry.storage.s3 import get_builder as module
from podferry.storage.s3.credentials import S3CredentialsProvider
from podferry.storage.s3.endpoint import s3_access
from podferry.storage.s3.get_builder import get_builder_for
from podferry.storage.s3.sigv4 import S3Credentials
from podferry.storage.store import StoreConfig
from tests.support.request_builder_contract import *  # noqa: F403

KEYS = {"AWS_ACCESS_KEY_ID": "key-of-tests", "AWS_SECRET_ACCESS_KEY": "secret-of-tests"}
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


def heads_of(key="", endpoint=ENDPOINT, held=KEYS, reload_credentials=None, scheme="s3", **variables):
    config = StoreConfig(
        endpoint=endpoint, credentials={**held, **variables}, reload_credentials=reload_credentials
    )
    return get_builder_for(s3_access(Uri(scheme, "bucket", key), config))


async def prepared(*arguments, **options):
    heads = heads_of(*arguments, **options)
    await heads.prepare([])
    return heads


@given(key=KEY)
def test_keys_are_sent_as_they_are(key):
    heads = heads_of(key, held={"AWS_SKIP_SIGNATURE": "true"})
    first, _ = lines_of(heads.build(Entry("n~+%", 3), 0, 3))
    method, path, version = first.split(" ")
    assert (method, version) == ("GET", "HTTP/1.1")
    assert module.quote(key, safe="/~") in path
    assert path.endswith("/n~%2B%25")


async def test_a_whole_object_is_asked_for_without_a_range_and_with_its_checksum():
    heads = await prepared("run")
    first, sent = lines_of(heads.build(Entry("a/b", 10, '"tag"'), 0, 10))
    assert first == "GET /bucket/run/a/b HTTP/1.1"
    assert sent["host"] == "127.0.0.1:9000"
    assert sent["if-match"] == '"tag"'
    assert sent["x-amz-checksum-mode"] == "ENABLED"
    assert "SignedHeaders=host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date" in sent["authorization"]
    assert "range" not in sent
    first, sent = lines_of(heads.build(Entry("a/b", 10, '"tag"'), 0, 10, "HEAD"))
    assert first == "HEAD /bucket/run/a/b HTTP/1.1"
    assert sent["x-amz-checksum-mode"] == "ENABLED"
    _, sent = lines_of(heads.build(Entry("empty", 0), 0, 0))
    assert not {"range", "if-match"} & set(sent)


@pytest.mark.parametrize(("start", "length", "stated"), [(0, 9, "0-8"), (1, 9, "1-9"), (9, 1, "9-9")])
async def test_a_range_is_asked_for_without_a_checksum(start, length, stated):
    heads = await prepared()
    _, sent = lines_of(heads.build(Entry("a", 10), start, length))
    assert sent["range"] == f"bytes={stated}"
    assert "x-amz-checksum-mode" not in sent


@pytest.mark.parametrize("tag", ["", "no-quotes", 'W/"weak"', '"a"\r\nEvil: 1', '"ü"'])
async def test_a_tag_that_is_no_strong_one_is_not_sent(tag):
    heads = await prepared()
    _, sent = lines_of(heads.build(Entry("a", 10, tag), 0, 10))
    assert "if-match" not in sent
    assert "evil" not in sent


async def test_nothing_is_signed_without_keys():
    heads = await prepared(held={"AWS_SKIP_SIGNATURE": "true"})
    _, sent = lines_of(heads.build(Entry("a", 10, '"t"'), 0, 10))
    assert set(sent) == {"host", "user-agent", "if-match", "x-amz-checksum-mode"}


def test_the_bucket_may_be_in_the_hosts_name():
    variables = {"AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true", "AWS_SKIP_SIGNATURE": "true"}
    heads = heads_of("run", "https://s3.example.com", variables)
    first, sent = lines_of(heads.build(Entry("a", 1), 0, 1))
    assert (first, sent["host"]) == ("GET /run/a HTTP/1.1", "bucket.s3.example.com")
    assert heads.origin == Origin("bucket.s3.example.com", 443, tls=True)


def test_baidus_store_is_asked_as_amazons():
    heads = heads_of(endpoint=None, scheme="bos", AWS_REGION="gz")
    assert heads.origin == Origin("s3.gz.bcebos.com", 443, tls=True)


async def test_renewed_keys_sign_what_comes_after(monkeypatch):
    monkeypatch.setattr("podferry.storage.credentials.refresh.REFRESH_SECONDS", 0)
    held = dict(KEYS)
    heads = await prepared(reload_credentials=lambda: held)
    old = lines_of(heads.build(Entry("a", 1), 0, 1))[1]["authorization"]
    held = {**KEYS, "AWS_ACCESS_KEY_ID": "newer", "AWS_SESSION_TOKEN": "token"}
    assert lines_of(heads.build(Entry("a", 1), 0, 1))[1]["authorization"].startswith(old[:40])
    await heads.prepare([])
    _, sent = lines_of(heads.build(Entry("a", 1), 0, 1))
    assert "Credential=newer/" in sent["authorization"]
    assert sent["x-amz-security-token"] == "token"


async def test_keys_are_not_read_for_every_batch():
    read = []
    heads = heads_of(reload_credentials=lambda: read.append(1) or KEYS)
    await asyncio.gather(heads.prepare([]))
    await heads.prepare([])
    assert len(read) == 1


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN"])
async def test_no_key_brings_lines_of_its_own(name):
    heads = heads_of(**{name: "a\r\nEvil: 1"})
    with pytest.raises(CredentialsMissing, match="no header"):
        await heads.prepare([])
    with pytest.raises(CredentialsMissing, match="not signed"):
        heads.build(Entry("a", 1), 0, 1)


def test_unprepared_requests_are_not_sent_unsigned():
    with pytest.raises(CredentialsMissing, match="not signed"):
        heads_of().build(Entry("a", 1), 0, 1)


@pytest.fixture
def container(monkeypatch):
    """Keys of a container's service; as the environment of the process and of the store say."""
    held = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:1/x"}
    monkeypatch.setattr("os.environ", dict(held))
    answers = []

    def keys(_):
        if isinstance(answers[0], Exception):
            raise answers[0]
        return answers[0]

    monkeypatch.setattr(S3CredentialsProvider, "load", keys)
    monkeypatch.setattr("podferry.storage.credentials.refresh.REFRESH_SECONDS", 0)
    return held, answers


async def test_ambient_keys_are_asked_for_and_outlast_a_service_that_fails(container):
    held, answers = container
    answers[:] = [CredentialsMissing.of("nobody answers")]
    with pytest.raises(CredentialsMissing):
        await prepared(held=held)
    answers[:] = [S3Credentials("first", "secret", "token")]
    heads = await prepared(held=held)
    answers[:] = [CredentialsMissing.of("nobody answers")]
    await heads.prepare([])
    _, sent = lines_of(heads.build(Entry("a", 1), 0, 1))
    assert "Credential=first/" in sent["authorization"]


def test_where_amazons_library_would_find_other_keys_only_the_engine_asks(container):
    held, _ = container
    assert heads_of(held=held) is not None
    assert heads_of(held={**held, "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:2/y"}) is None


@pytest.fixture
async def store(config, fresh_s3, quick):
    store = open_store(fresh_s3, config, quick)
    yield store
    await store.close()


async def test_both_engines_ask_alike(config, fresh_s3, store):
    other = open_store(msgspec.structs.replace(fresh_s3, options=(("engine", "fsspec"),)), config)
    (first, sent), (first_of_other, sent_by_other) = [
        lines_of(requests.build(Entry("a b", 10, '"t"'), 0, 5))
        for requests in (store.request_builder, other.request_builder)
        if await requests.prepare([]) is None
    ]
    assert first == first_of_other
    assert sent["authorization"].split(", Sig")[0] == sent_by_other["authorization"].split(", Sig")[0]
    await other.close()
