"""Reads the checksum of the complete object from a response head.

The fields, the fastest and strongest first, and in which responses they are of the complete object:

=========================  =============================================================================
`x-amz-checksum-*`         200 only: with a 206 S3 sends none, that of a part, or a composite one that
                           lost its `-N` (boto/botocore#3346). Not if composite (`-N`, COMPOSITE)
`x-goog-hash`              200 and 206: of the stored object, so not if GCS decompresses gzip
`x-oss-hash-crc64ecma`     200 and 206: always of the complete object
`Content-MD5`              200 only: by RFC 1864 it is of the body
`x-ms-blob-content-md5`    200 and 206: Azure's name for that of the complete blob
`ETag` of 32 hex digits    200 and 206, of S3 and OSS, if it is an MD5: not with SSE-KMS or SSE-C, in
                           directory buckets, or of objects uploaded in parts or appended to. At a plain
                           web server it may be anything
=========================  =============================================================================

A field that is malformed, or of an object with another size than the listed one, is ignored: the size of a
file without a checksum is still verified, but a wrong checksum would reject good data.
"""

from __future__ import annotations

import binascii
import re

from podferry.contract.lazy_pattern import lazy_pattern
from podferry.contract.manifest import Entry
from podferry.storage.checksum.checksums import DIGEST_BYTES, Checksum, ChecksumKind, is_computable

CHECKSUM_FIELDS = lazy_pattern(
    rb"\r\n(etag|content-(?:range|md5|encoding)|x-(?:amz|goog|oss)-[a-z0-9-]+|x-ms-blob-content-md5)"
    rb":[ \t]*([^\r]*)",
    re.IGNORECASE,
)
"""Searching the head costs a fifth of a small file's fetch, so it is only done if it may find something."""
CRC64NVME_LINE = b"\r\nx-amz-checksum-crc64nvme: "
"""As Amazon sends it for every object since December 2024: found without the search."""
AMZ_FIELDS = tuple(
    (f"x-amz-checksum-{kind}".encode(), kind)
    for kind in (
        ChecksumKind.CRC64NVME,
        ChecksumKind.CRC32C,
        ChecksumKind.CRC32,
        ChecksumKind.SHA256,
        ChecksumKind.SHA1,
    )
)
GOOG_HASHES = ((b"crc32c", ChecksumKind.CRC32C), (b"md5", ChecksumKind.MD5))
MD5_HEX = re.compile(rb"[0-9a-fA-F]{32}")
MAX_UINT64_DIGITS = 20
MD5_ETAG_ENCRYPTIONS = (b"", b"aes256")
"""Without encryption, or with the store's own key, the ETag is the MD5 of the uploaded bytes."""

Fields = dict[bytes, bytes]
"""Values by lower-case name; those of a repeated name are joined by commas."""


def response_checksum(head: bytes, entry: Entry) -> Checksum | None:
    """The checksum of the complete object, or None if the head has no reliable one.

    Args:
        head: Of the response to a GET or HEAD: the status line and the header fields, separated by CRLF.
        entry: The object as it was listed.
    """
    status = head[9:12]
    at = head.find(CRC64NVME_LINE)
    if at >= 0 and status == b"200" and (checksum := _crc64nvme(head, at + len(CRC64NVME_LINE))):
        return checksum
    lowered = head.lower()
    if b"\r\nx-" not in lowered and b"\r\ncontent-md5" not in lowered:
        return None
    fields = _fields(head)
    if status == b"200":
        return _amz(fields) or _object_checksum(fields, b"content-md5")
    if status == b"206" and fields.get(b"content-range", b"").rstrip().endswith(b"/%d" % entry.size):
        return _object_checksum(fields)
    return None


def _crc64nvme(head: bytes, start: int) -> Checksum | None:
    value = head[start : start + 14]
    return _base64(ChecksumKind.CRC64NVME, value[:12]) if value.endswith(b"\r\n") else None


def _fields(head: bytes) -> Fields:
    fields: Fields = {}
    for name, value in CHECKSUM_FIELDS.findall(head):
        known = name.lower()
        fields[known] = fields[known] + b"," + value if known in fields else value
    return fields


def _object_checksum(fields: Fields, *more: bytes) -> Checksum | None:
    """The checksum in fields that are of the complete object even in a 206; `more` are fields with an MD5."""
    found = _goog(fields) or _oss(fields)
    for name in (*more, b"x-ms-blob-content-md5"):
        found = found or _base64(ChecksumKind.MD5, fields.get(name, b""))
    return found or _etag(fields)


def _amz(fields: Fields) -> Checksum | None:
    if fields.get(b"x-amz-checksum-type", b"").upper() == b"COMPOSITE":
        return None
    found = (_base64(kind, fields[name]) for name, kind in AMZ_FIELDS if name in fields)
    return next(filter(None, found), None)


def _goog(fields: Fields) -> Checksum | None:
    if b"x-goog-hash" not in fields or _decompressed(fields):
        return None
    parts = [part.partition(b"=") for part in fields[b"x-goog-hash"].split(b",")]
    hashes = {name.strip(): value for name, _, value in parts}
    return next(filter(None, (_base64(kind, hashes.get(name, b"")) for name, kind in GOOG_HASHES)), None)


def _decompressed(fields: Fields) -> bool:
    """Whether GCS decompressed the object: its hash is of the stored bytes."""
    stored = fields.get(b"x-goog-stored-content-encoding", b"identity")
    return stored not in (b"identity", fields.get(b"content-encoding"))


def _oss(fields: Fields) -> Checksum | None:
    text = fields.get(b"x-oss-hash-crc64ecma", b"").strip()
    if (
        not text.isdigit()
        or len(text) > MAX_UINT64_DIGITS
        or int(text) >> 64
        or not is_computable(ChecksumKind.CRC64XZ)
    ):
        return None
    return Checksum(ChecksumKind.CRC64XZ, int(text).to_bytes(8, "big"))


def _etag(fields: Fields) -> Checksum | None:
    value = fields.get(b"etag", b"").strip().strip(b'"')
    if not MD5_HEX.fullmatch(value) or not _etag_is_md5(fields):
        return None
    return Checksum(ChecksumKind.MD5, bytes.fromhex(value.decode()))


def _etag_is_md5(fields: Fields) -> bool:
    if any(name.startswith(b"x-oss-") for name in fields):
        encryption = fields.get(b"x-oss-server-side-encryption", b"")
        return (
            fields.get(b"x-oss-object-type", b"").lower() == b"normal"
            and encryption.lower() in MD5_ETAG_ENCRYPTIONS
        )
    return (
        any(name.startswith(b"x-amz-") for name in fields)
        and fields.get(b"x-amz-server-side-encryption", b"").lower() in MD5_ETAG_ENCRYPTIONS
        and b"x-amz-server-side-encryption-customer-algorithm" not in fields
        and fields.get(b"x-amz-storage-class") != b"EXPRESS_ONEZONE"
    )


def _base64(kind: ChecksumKind, text: bytes) -> Checksum | None:
    if not text:
        return None
    try:
        value = binascii.a2b_base64(text.strip(), strict_mode=True)
    except binascii.Error:
        return None
    return Checksum(kind, value) if len(value) == DIGEST_BYTES[kind] else None
