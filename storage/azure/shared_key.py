"""Signs requests with the key of a storage account.

Source: "Authorize with Shared Key", Azure Storage REST API reference.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping

SIGNED_HEADERS = (
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
)
"""In this order; those that a request does not have are signed as empty lines."""


def authorization(
    account: str, key: bytes, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str]
) -> str:
    """The value of the `Authorization` header.

    Args:
        account: Of the storage.
        key: Decoded.
        method: Of HTTP.
        path: Encoded as it is sent.
        query: Not encoded.
        headers: All that are signed, with the content's length unless that is 0.
    """
    sent = {name.lower(): value for name, value in headers.items()}
    lines = [method, *(sent.get(name, "") for name in SIGNED_HEADERS)]
    lines += [f"{name}:{value}" for name, value in sorted(sent.items()) if name.startswith("x-ms-")]
    resource = [f"/{account}{path}", *(f"{name.lower()}:{value}" for name, value in sorted(query.items()))]
    text = "\n".join([*lines, *resource])
    digest = hmac.digest(key, text.encode(), "sha256")
    return f"SharedKey {account}:{base64.b64encode(digest).decode()}"
