"""The date of the last change as a file's tag, for servers without ETags: those of Python, Go and BusyBox.

An ETag is in quotation marks, so the two cannot be confused.
"""

from __future__ import annotations

DATE_END = " GMT"
"""Of every date in HTTP. Source: RFC 9110, section 5.6.7."""
STRONG_SECONDS = 1
"""By how much the date must be older than the response to identify the content: it may change again within
that second, and some servers send the time of the response. Source: RFC 9110, section 8.8.2.2."""


def tag_of(etag: str, modified: str, sent: str) -> str:
    """The tag of a file.

    Args:
        etag: The response's ETag, or empty.
        modified: Its Last-Modified, or empty.
        sent: Its Date, or empty.

    Returns:
        The ETag; else the date of the last change if it identifies the content; else nothing.
    """
    if etag or not is_date_tag(modified):
        return etag
    # Imported here: few servers send no ETag, and this takes some milliseconds.
    from email.utils import parsedate_to_datetime  # noqa: PLC0415

    try:
        age = parsedate_to_datetime(sent) - parsedate_to_datetime(modified)
    except (TypeError, ValueError):
        return ""
    return modified if age.total_seconds() >= STRONG_SECONDS else ""


def is_date_tag(tag: str) -> bool:
    """Whether a tag is the date of the last change."""
    return tag.endswith(DATE_END)
