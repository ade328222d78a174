"""What responses of WebHDFS say, also those of other servers."""

import json

import pytest

from podferry.contract.errors import InvalidSpec, NotFound, Throttled, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.webhdfs.responses import file_status, listed_page, refusal

LOCATION = StoreLocation(parse_uri("webhdfs://node:9870/"))
STATUS = {"type": "FILE", "length": 5, "modificationTime": 7, "fileId": 16400, "pathSuffix": "a"}


@pytest.mark.parametrize(
    ("status", "body", "kind", "text"),
    [
        (404, {"exception": "FileNotFoundException", "message": "no /a"}, NotFound, "no /a"),
        (
            403,
            {"javaClassName": "org.apache.hadoop.ipc.StandbyException", "message": None},
            Unavailable,
            "standby",
        ),
        (404, "<html>", InvalidSpec, "does not respond as a NameNode (HTTP 404, <html>"),
        (401, "<html>", InvalidSpec, "SPNEGO"),
        (407, "", InvalidSpec, "proxy"),
        (429, "", Throttled, "HTTP 429"),
        (502, "bad gateway", Unavailable, "HTTP 502, bad gateway"),
        (400, "\xff\x00", InvalidSpec, "HTTP 400"),
    ],
)
def test_a_refusal_is_named(status, body, kind, text):
    sent = (
        json.dumps({"RemoteException": body}).encode() if isinstance(body, dict) else body.encode("latin-1")
    )
    error = refusal(LOCATION, "a", status, sent)
    assert type(error) is kind
    assert text in str(error)


def test_a_status():
    found = file_status(STATUS)
    assert (found.name, found.size, found.tag, found.is_directory) == ("a", 5, "16400-7-5", False)
    gateway = {name: value for name, value in STATUS.items() if name != "fileId"}
    assert file_status(gateway, "b").tag == "-7-5"
    assert file_status({**STATUS, "type": "DIRECTORY"}).is_directory


def test_a_page():
    listing = {"partialListing": {"FileStatuses": {"FileStatus": [STATUS]}}, "remainingEntries": 3}
    (entry,), remaining = listed_page({"DirectoryListing": listing})
    assert (entry.name, remaining) == ("a", 3)


@pytest.mark.parametrize("missing", ["type", "length", "modificationTime", "pathSuffix"])
def test_a_status_without_a_field_is_no_status(missing):
    with pytest.raises(KeyError):
        file_status({name: value for name, value in STATUS.items() if name != missing})
