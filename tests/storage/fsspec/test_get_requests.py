"""Requests to web servers and to Google Cloud Storage, or none: then the file system sends them."""

import pytest

from podferry.contract.errors import CredentialsMissing, FerryError, InvalidSpec
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.fsspec.get_requests import get_builder_for
from podferry.storage.fsspec.options import options_for
from podferry.storage.request_builder import Origin
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import LIMITS

ENTRY = Entry("a b+%/ü", 10, '"t"')


def lines_of(head):
    first, *lines = head.decode("ascii").removesuffix("\r\n\r\n").split("\r\n")
    return first, dict(line.split(": ", 1) for line in lines)


def builder_for(uri, file_system=None, **held):
    config = StoreConfig(credentials=held)
    return get_builder_for(uri, config, options_for(uri, config, LIMITS), lambda: file_system)


def test_files_are_requested_unencoded():
    builder = builder_for(Uri("https", "data.example.com:8443", "set one"))
    first, sent = lines_of(builder.build(ENTRY, 0, 10))
    assert first == "GET /set%20one/a%20b%2B%25/%C3%BC HTTP/1.1"
    assert sent["Host"] == "data.example.com:8443"
    assert sent["Accept-Encoding"] == "identity"
    assert sent["If-Match"] == '"t"'
    assert builder.origin == Origin("data.example.com", 8443, tls=True, pages=True)


class Credentials:
    """Like those of gcsfs, which renews them itself."""

    def __init__(self):
        self.tokens = ["first", "second"]
        self.credentials = self

    def apply(self, headers):
        if not self.tokens:
            raise OSError("no answer")
        headers["Authorization"] = f"Bearer {self.tokens.pop(0)}"


async def test_google_gets_json_api_requests_with_the_current_token(monkeypatch):
    monkeypatch.setattr("podferry.storage.credentials.refresh.REFRESH_SECONDS", 0)
    builder = builder_for(Uri("gs", "bucket", "run"), Credentials())
    with pytest.raises(CredentialsMissing, match="no token"):
        builder.build(ENTRY, 0, 10)
    await builder.prepare([ENTRY])
    first, sent = lines_of(builder.build(ENTRY, 0, 10))
    assert first == "GET /download/storage/v1/b/bucket/o/run%2Fa%20b%2B%25%2F%C3%BC?alt=media HTTP/1.1"
    assert sent["Host"] == "storage.googleapis.com"
    assert sent["Authorization"] == "Bearer first"
    assert "If-Match" not in sent
    assert builder.origin.tag_field == "etag"
    for _ in range(2):  # the second time there is no new one: the last one stays
        await builder.prepare([ENTRY])
        assert lines_of(builder.build(ENTRY, 0, 10))[1]["Authorization"] == "Bearer second"


async def test_without_a_token_the_engine_reports_why():
    missing = Credentials()
    missing.tokens = []
    with pytest.raises(FerryError):
        await builder_for(Uri("gs", "bucket"), missing).prepare([])


def test_file_system_options_leave_requests_to_the_engine():
    assert builder_for(Uri("http", "h"), FSSPEC_HTTP_HEADERS="x") is None
    assert builder_for(Uri("gs", "b"), FSSPEC_GS_REQUESTER_PAYS="x") is None


def test_if_the_process_redirects_gcsfs_only_gcsfs_sends_requests(monkeypatch):
    assert builder_for(Uri("gs", "b")) is not None
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "127.0.0.1:1")
    assert builder_for(Uri("gs", "b")) is None
    assert builder_for(Uri("gs", "b"), STORAGE_EMULATOR_HOST="http://127.0.0.1:1").origin.port == 1


@pytest.mark.parametrize("uri", [Uri("sftp", "h"), Uri("ftp", "h"), Uri("file", "")])
def test_other_stores_have_no_builder(uri):
    assert builder_for(uri) is None


@pytest.mark.parametrize("bucket", ["user@host", "user:password@host"])
def test_a_user_does_not_belong_in_the_address_of_a_web_server(bucket):
    with pytest.raises(InvalidSpec, match="must not name a user") as caught:
        builder_for(Uri("http", bucket))
    assert "password" not in str(caught.value.problems[0].measured)


async def test_credentials_are_lines_of_the_request():
    builder = builder_for(Uri("https", "host"), username="u", password="p", HTTP_HEADERS="X-Key: k")
    await builder.prepare([ENTRY])
    _, sent = lines_of(builder.build(ENTRY, 0, 10))
    assert sent["Authorization"] == "Basic dTpw"
    assert sent["X-Key"] == "k"
