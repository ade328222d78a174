"""The header that has OSS refuse a body which was damaged on its way."""

from __future__ import annotations

import base64
import hashlib

from podferry.storage.http.store_client import Buffer


def content_md5(data: Buffer) -> str:
    """The value of `Content-MD5`: RFC 1864."""
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
