"""Requests to Google Cloud Storage, or none: then the file system sends them."""

import pytest

from podferry.contract.errors import CredentialsMissing, FerryError
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.fsspec.get_requests import get_builder_for
from podferry.storage.fsspec.options import options_for
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import LIMITS

ENTRY = Entry("a b+%/ü", 10, '"t"')


def lines_of(head):
    first, *lines = head.decode("ascii").removesuffix("\r\n\r\n").split("\r\n")
    return first, dict(line.split(": ", 1) for line in lines)


def builder_for(uri, file_system=None, **held):
    config = StoreConfig(credentials=held)
    return get_builder_for(uri, config, options_for(uri, config, LIMITS), lambda: file_system)


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
    assert builder_for(Uri("gs", "b"), FSSPEC_GS_REQUESTER_PAYS="x") is None


def test_if_the_process_redirects_gcsfs_only_gcsfs_sends_requests(monkeypatch):
    assert builder_for(Uri("gs", "b")) is not None
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "127.0.0.1:1")
    assert builder_for(Uri("gs", "b")) is None
    assert builder_for(Uri("gs", "b"), STORAGE_EMULATOR_HOST="http://127.0.0.1:1").origin.port == 1


@pytest.mark.parametrize("uri", [Uri("sftp", "h"), Uri("http", "h"), Uri("file", "")])
def test_other_stores_have_no_builder(uri):
    assert builder_for(uri) is None
