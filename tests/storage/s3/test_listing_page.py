"""Pages of listings, as services write them and as they break."""

from __future__ import annotations

import pytest

from podferry.contract.manifest import Entry
from podferry.storage.http.store_client import StoreResponse
from podferry.storage.s3.listing_page import ListedPage, UnreadableListing, parse_page
from podferry.storage.s3.response import NotFromS3
from tests.support.listing_servers import s3_page

AMAZON = """<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bucket</Name><Prefix>d/</Prefix>
<NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=</NextContinuationToken><KeyCount>2</KeyCount>
<MaxKeys>2</MaxKeys><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><Contents>
<Key>d/a+b%2Bc</Key><LastModified>2026-11-22T22:47:00.000Z</LastModified><ETag>"0"</ETag><Size>7</Size></Contents>
<CommonPrefixes><Prefix>d/%C3%BC/</Prefix></CommonPrefixes></ListBucketResult>"""


def parsed(text: str) -> ListedPage:
    return parse_page(StoreResponse(200, {"Content-Type": "application/xml"}, text))


def test_a_page_of_amazon() -> None:
    token = "1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM="
    page = parsed(AMAZON)
    entries = [Entry("d/a b+c", 7, '"0"')]
    assert page == ListedPage(entries, ["d/ü/"], truncated=True, token=token, max_keys=2)
    assert page.keys == ["d/a b+c", "d/ü/"]


def test_keys_that_are_not_encoded_stay_as_they_are() -> None:
    text = AMAZON.replace("<EncodingType>url</EncodingType>", "").replace('"0"', "0")
    assert parsed(text).entries == [Entry("d/a+b%2Bc", 7, '"0"')]


def stating(field: str | None, token: str = "", extra: str = "") -> str:
    """A page of one key that says so, or nothing, about whether there is more."""
    stated = "" if field is None else f"<IsTruncated>{field}</IsTruncated>"
    return s3_page(["d/x"], token=token).replace("<IsTruncated>false</IsTruncated>", stated + extra)


@pytest.mark.parametrize(
    ("field", "token", "truncated", "more"),
    [
        ("true", "", True, True),
        ("TRUE", "x", True, True),
        ("1", "", True, True),
        ("\n true ", "", True, True),
        ("false", "", False, False),
        ("0", "", False, False),
        ("false", " ", False, False),
        ("false", "x", False, True),
        (None, "x", None, True),
        (None, "", None, False),
        ("", "", None, False),
    ],
)
def test_there_is_more_if_the_page_says_so(
    field: str | None, token: str, truncated: bool | None, more: bool
) -> None:
    page = parsed(stating(field, token))
    assert (page.truncated, page.more) == (truncated, more)


@pytest.mark.parametrize(
    ("extra", "more"),
    [
        ("<NextMarker>d/x</NextMarker>", True),
        ("<NextMarker/>", False),
        ("<MaxKeys>1</MaxKeys>", True),
        ("<MaxKeys>2</MaxKeys>", False),
        ("<MaxKeys>?</MaxKeys>", False),
    ],
)
def test_there_may_be_more_behind_a_marker_or_a_full_page(extra: str, more: bool) -> None:
    assert parsed(stating(None, extra=extra)).more is more
    assert parsed(stating("false", extra=extra)).more is (more and "Marker" in extra)


@pytest.mark.parametrize("status", [201, 202, 203, 206])
def test_a_listing_with_another_status_than_200_is_refused(status: int) -> None:
    with pytest.raises(UnreadableListing) as caught:
        parse_page(StoreResponse(status, {}, s3_page(["d/x"])))
    assert caught.value.status == status
    assert "the status of a listing is 200" in caught.value.detail


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (s3_page(["d/x"])[:-30], "line 1, column"),
        (s3_page(["d/x"]).replace("<Size>1", "<Size>-5"), "the size of 'd/x' is '-5'"),
        (s3_page(["d/x"]).replace("<Size>1", "<Size>²"), r"the size of 'd/x' is '\\xb2'"),
        (s3_page(["d/x"]).replace("<Size>1</Size>", ""), "the size of 'd/x' is ''"),
        (s3_page([""]), "an entry has no key"),
        (s3_page(["d/x"]).replace("</Key>", "</Key><Key>d/y</Key>"), "an entry has 2 keys"),
        (stating("yes"), "IsTruncated is 'yes'"),
        (
            stating("true", extra="<IsTruncated>false</IsTruncated>"),
            "IsTruncated comes 2 times: 'true', 'false'",
        ),
        (stating("true", "x", "<NextContinuationToken>y</NextContinuationToken>"), "Token comes 2 times"),
        (stating("false", extra="<KeyCount>2</KeyCount>"), "KeyCount is 2, and 1 keys are listed"),
    ],
)
def test_a_page_that_cannot_be_read_is_shown(text: str, problem: str) -> None:
    with pytest.raises(UnreadableListing) as caught:
        parsed(text)
    assert caught.value.detail.startswith("application/xml: '<ListBucketResult>")
    assert problem.replace(r"\\", "\\") in caught.value.detail


@pytest.mark.parametrize("text", ["", "{}", "<html></html>", "<EnumerationResults/>"])
def test_what_is_no_listing_is_not_from_s3(text: str) -> None:
    with pytest.raises(NotFromS3):
        parsed(text)
