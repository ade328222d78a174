"""A bucket of the imitation of OSS: objects in memory, multipart uploads, listings."""

from __future__ import annotations

import base64
import hashlib
import itertools
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from email.utils import formatdate

from alibabacloud_oss_v2.crc import Crc64

from tests.support.oss.errors import OssError

MIN_PART_BYTES = 100 * 1024
"""Of every part but the last: "Limits", Alibaba's OSS API reference."""
MAX_KEYS = 1000


def crc64(data: bytes) -> int:
    """As Alibaba's SDK computes it, for podferry's own to be compared with."""
    crc = Crc64(0)
    crc.write(data)
    return int(crc.sum64())


@dataclass
class StoredObject:
    """An object or a part."""

    data: bytes
    kind: str = "Normal"
    etag: str = ""
    storage_class: str = "Standard"
    modified: float = field(default_factory=time.time)
    version: str = ""

    def __post_init__(self) -> None:
        digest = hashlib.md5(self.data, usedforsecurity=False).hexdigest().upper()
        self.etag = self.etag or f'"{digest}"'
        self.crc = crc64(self.data)

    def headers(self) -> dict[str, str]:
        headers = {
            "ETag": self.etag,
            "Last-Modified": formatdate(self.modified, usegmt=True),
            "x-oss-object-type": self.kind,
            "x-oss-hash-crc64ecma": str(self.crc),
            "x-oss-storage-class": self.storage_class,
        }
        if self.kind == "Normal":
            headers["Content-MD5"] = base64.b64encode(bytes.fromhex(self.etag.strip('"'))).decode()
        return headers | ({"x-oss-version-id": self.version} if self.version else {})


@dataclass
class Upload:
    """A multipart upload; parts by number."""

    key: str
    parts: dict[int, StoredObject] = field(default_factory=dict)


@dataclass
class Listing:
    """A page: keys and their objects, common prefixes, and where it continues, or empty at the end."""

    objects: list[tuple[str, StoredObject]]
    prefixes: list[str]
    behind: str


class Bucket:
    """Keys and what they have. `versioned` buckets ignore `x-oss-forbid-overwrite`, as OSS does."""

    def __init__(self) -> None:
        self.objects: dict[str, StoredObject] = {}
        self.uploads: dict[str, Upload] = {}
        self.versioned = False
        self._numbers = itertools.count(1)

    def get(self, key: str) -> StoredObject:
        if key not in self.objects:
            raise OssError("NoSuchKey", Key=key)
        return self.objects[key]

    def check_free(self, key: str, forbid_overwrite: str) -> None:
        if forbid_overwrite not in {"", "true", "false"}:
            raise OssError("InvalidArgument", "The x-oss-forbid-overwrite is invalid.")
        if forbid_overwrite == "true" and key in self.objects and not self.versioned:
            raise OssError("FileAlreadyExists")

    def put(self, key: str, stored: StoredObject) -> StoredObject:
        if len(key.encode()) > 1023 or key.startswith(("/", "\\")):
            raise OssError("InvalidObjectName")
        stored.version = f"CAEQ{next(self._numbers):028}" if self.versioned else ""
        self.objects[key] = stored
        return stored

    def begin(self, key: str) -> str:
        upload = f"{next(self._numbers):032X}"
        self.uploads[upload] = Upload(key)
        return upload

    def upload(self, key: str, upload: str) -> Upload:
        found = self.uploads.get(upload)
        if found is None or found.key != key:
            raise OssError("NoSuchUpload", UploadId=upload)
        return found

    def complete(self, key: str, upload: str, listed: list[tuple[int, str]]) -> StoredObject:
        parts = self.upload(key, upload).parts
        if not listed or [number for number, _ in listed] != sorted({number for number, _ in listed}):
            raise OssError("InvalidPartOrder" if listed else "MalformedXML")
        for number, etag in listed:
            if number not in parts or parts[number].etag.strip('"') != etag.strip('"').upper():
                raise OssError("InvalidPart", PartNumber=str(number))
        chosen = [parts[number] for number, _ in listed]
        if any(len(part.data) < MIN_PART_BYTES for part in chosen[:-1]):
            raise OssError("EntityTooSmall")
        del self.uploads[upload]
        digests = "".join(part.etag for part in chosen).encode()
        etag = hashlib.md5(digests, usedforsecurity=False).hexdigest().upper()
        data = b"".join(part.data for part in chosen)
        return self.put(key, StoredObject(data, "Multipart", f'"{etag}-{len(chosen)}"'))

    def page(self, prefix: str, delimiter: str, behind: str, max_keys: int) -> Listing:
        """The keys and common prefixes behind one of them, in the order of their bytes."""
        if not 0 < max_keys <= MAX_KEYS:
            raise OssError("InvalidArgument", "The max-keys is invalid.", ArgumentName="max-keys")
        found: list[str] = []
        for name in self._names(prefix, delimiter):
            if name > behind and (not found or found[-1] != name):
                found.append(name)
            if len(found) > max_keys:
                break
        page = found[:max_keys]
        objects = [(name, self.objects[name]) for name in page if self._is_key(name, prefix, delimiter)]
        prefixes = [name for name in page if not self._is_key(name, prefix, delimiter)]
        return Listing(objects, prefixes, page[-1] if len(found) > max_keys else "")

    def _names(self, prefix: str, delimiter: str) -> Iterable[str]:
        for key in sorted(self.objects):
            if key.startswith(prefix):
                inner, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
                yield prefix + inner + found if found else key

    def _is_key(self, name: str, prefix: str, delimiter: str) -> bool:
        return name in self.objects and not (delimiter and delimiter in name[len(prefix) :])
