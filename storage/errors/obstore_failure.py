"""Failures that obstore describes without the status of an error."""

from __future__ import annotations

import re
from typing import NamedTuple

BARE_REDIRECT_PATTERN = re.compile(r"\binner: BareRedirect\b")
"""S3's 301 for a bucket in another region: it has no Location."""
DELETE_FAILED_PATTERN = re.compile(r"\bDeleteFailed \{.*?\bcode: \"([A-Za-z0-9.]{1,64})\"", re.DOTALL)
"""One object among several that were to be deleted: the response as a whole reports success."""
UNREADABLE_LISTING_PATTERN = re.compile(r"\bInvalidListResponse\b")
WRONG_RESPONSE_PATTERN = re.compile(
    r"\bsource: (NotPartial|NoContentRange|UnexpectedRange|MissingContentLength)\b"
)
WRONG_RESPONSES = {
    "NotPartial": "not partial, although a range was requested",
    "NoContentRange": "no Content-Range",
    "UnexpectedRange": "another range",
    "MissingContentLength": "no size",
}
"""What object_store says of a response with a status of success that it cannot use."""

OTHER_PROTOCOL_PATTERN = re.compile(r"\bhyper::Error\(\s*(?:UnexpectedMessage\b|Parse\(\s*Version\b)")
"""The server speaks before it is asked, as those of SSH and FTP do, or its first line is none of HTTP."""

PAGE_PATTERN = re.compile(
    r"\binner: Status \{\s*status: (404|405),\s*body: Some\(\s*\""
    r"\s*(<(?:!doctype\s+)?html\b(?:[^\"\\]|\\.)*)",
    re.IGNORECASE,
)
"""The page of a web server, in Rust's quotation marks; what follows HEAD has none. Services send XML."""
PAGE_CHARACTERS = 60
"""Enough to recognize a page by."""


class ObstoreFailure(NamedTuple):
    """What happened; see `podferry.storage.errors.vendor_fields.VendorFields`."""

    kind: str = ""
    status: int = 0
    code: str = ""
    reason: str = ""


def foreign_page(text: str) -> str:
    """What a web server says in the place of a service, or empty; see `storage.http.foreign_response`."""
    found = PAGE_PATTERN.search(text)
    return f"HTTP {found[1]}: '{found[2][:PAGE_CHARACTERS]}'" if found else ""


def described_failure(text: str) -> ObstoreFailure | None:
    """The failure in obstore's text, or None if that has the status of an error, or no response."""
    if BARE_REDIRECT_PATTERN.search(text):
        return ObstoreFailure("region", 301)
    if refused := DELETE_FAILED_PATTERN.search(text):
        status = int(refused[1]) if refused[1].isdecimal() else 0  # Azure's is the status
        return ObstoreFailure(status=status, code="" if status else refused[1])
    if UNREADABLE_LISTING_PATTERN.search(text):
        return ObstoreFailure("unreadable", reason="the response is no listing")
    if OTHER_PROTOCOL_PATTERN.search(text):
        return ObstoreFailure("not http", reason="no response of HTTP")
    if response := WRONG_RESPONSE_PATTERN.search(text):
        return ObstoreFailure("other response", reason=WRONG_RESPONSES[response[1]])
    return None
