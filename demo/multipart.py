"""Multipart uploads of the embedded store: parts in memory until they are one object.

Source: S3's API reference, CreateMultipartUpload, UploadPart, CompleteMultipartUpload, AbortMultipartUpload.
"""

from __future__ import annotations

import hashlib
import re
from itertools import count

PART_IN_XML = re.compile(rb"<Part>.*?</Part>", re.DOTALL)
NUMBER_IN_XML = re.compile(rb"<PartNumber>(\d+)</PartNumber>")
TAG_IN_XML = re.compile(rb'<ETag>(?:"|&quot;|&#34;)?([0-9a-f]{32})')


class UnknownUploadError(Exception):
    """There is no such upload, or it is another key's."""


class InvalidPartError(Exception):
    """A part that is to be joined was not sent like that."""


class Uploads:
    """The uploads that have begun and have not ended."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._parts: dict[tuple[str, str], dict[int, bytes]] = {}

    def begin(self, key: str) -> str:
        """Begin one; its ID."""
        upload = f"upload-{next(self._numbers)}"
        self._parts[key, upload] = {}
        return upload

    def parts(self, key: str, upload: str) -> dict[int, bytes]:
        """What has been sent, by number.

        Raises:
            UnknownUploadError: There is no such upload.
        """
        if (key, upload) not in self._parts:
            raise UnknownUploadError(upload)
        return self._parts[key, upload]

    def send(self, key: str, upload: str, number: int, body: bytes) -> str:
        """Keep a part; its tag."""
        self.parts(key, upload)[number] = body
        return _tag(body)

    def complete(self, key: str, upload: str, document: bytes) -> bytes:
        """Join the parts that the document lists, in its order.

        Raises:
            UnknownUploadError: There is no such upload.
            InvalidPartError: One is missing, or was sent with other content.
        """
        sent, joined = self.parts(key, upload), []
        for part in PART_IN_XML.findall(document):
            number, tag = NUMBER_IN_XML.search(part), TAG_IN_XML.search(part)
            body = sent.get(int(number[1])) if number else None
            if body is None or tag is None or _tag(body) != tag[1].decode():
                raise InvalidPartError(part.decode())
            joined.append(body)
        self.forget(key, upload)
        return b"".join(joined)

    def forget(self, key: str, upload: str) -> None:
        """End one without an object.

        Raises:
            UnknownUploadError: There is no such upload.
        """
        self.parts(key, upload)
        del self._parts[key, upload]


def _tag(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()
