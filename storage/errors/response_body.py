"""What the body of an error response says: the XML of S3, compatible services and Azure.

It is searched, not parsed: obstore reports it within a longer text, and proxies send pages of their own.
"""

from __future__ import annotations

import re

import msgspec

CODE = re.compile(r"<Code>([A-Za-z0-9.]{1,64})</Code>")
REGION = re.compile(r"<Region>([a-z0-9-]{1,40})</Region>")
MESSAGE = re.compile(r"<Message>([^<\n]{1,400})")
STORAGE_CLASS = re.compile(r"<StorageClass>([A-Z_]{1,40})</StorageClass>")
ARCHIVED = "InvalidObjectState"
"""S3's code for an object to restore first. Listings and other bodies name storage classes, too."""
KMS_ACTION = re.compile(r"\bkms:[A-Za-z]+")


class ResponseBody(msgspec.Struct, frozen=True):
    """The vendor's code, the region that it names, and what else a user needs; empty if there is none."""

    code: str = ""
    region: str = ""
    detail: str = ""


def read_response_body(text: str) -> ResponseBody:
    """What an error's body says."""
    code, region = _first(CODE, text), _first(REGION, text)
    message, storage_class = _first(MESSAGE, text), _first(STORAGE_CLASS, text)
    if code.startswith("KMS."):
        return ResponseBody(code, region, message)
    if action := KMS_ACTION.search(message):
        return ResponseBody(code, region, action[0])
    archived = code == ARCHIVED and storage_class
    return ResponseBody(code, region, f"storage class {storage_class}" if archived else "")


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[1].strip() if found else ""
