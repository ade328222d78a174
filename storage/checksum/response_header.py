"""The checksum of a whole object that a store states in a response head.

What is taken, the quickest and strongest first, and of which answers it is the whole object's:

=========================  =============================================================================
`x-amz-checksum-*`         of a 200 alone: on a 206 S3 sends none, that of a part, or a sum of sums that
                           has lost its `-N` (boto/botocore#3346). `-N` and COMPOSITE are sums of sums
`x-goog-hash`              of 200 and 206: it is of the stored object; not where GCS unpacks gzip
`x-oss-hash-crc64ecma`     of 200 and 206: always of the whole object
`Content-MD5`              of a 200 alone: RFC 1864 has it of the body
`x-ms-blob-content-md5`    of 200 and 206: Azure's name for the whole blob's
`ETag` of 32 hex digits    of 200 and 206, of S3 and OSS, where it is an MD5: not under SSE-KMS or SSE-C, not
                           in directory buckets, not of objects that were sent in parts or appended to. A
                           plain web server's may be of anything
=========================  =============================================================================

A claim that is malformed, or of an object of another length than the listed one, is none: a file without a
sum is still counted, and a mistaken sum would refuse good data.
"""

from __future__ import annotations

import binascii
import re

from podferry.contract.manifest import Entry
from podferry.storage.checksum.checksums import (
    DIGEST_BYTES,
    Checksum,
    ChecksumKind,
    is_computable,
)

CHECKSUM_FIELDS = re.compile(
    rb"\r\n(etag|content-(?:range|md5|encoding)|x-(?:amz|goog|oss)-[a-z0-9-]+|x-ms-blob-content-md5)"
    rb":[ \t]*([^\r]*)",
    re.IGNORECASE,
)
"""A pass over the head costs a fifth of a small file's fetch: it is made only where it may find something."""
CRC64NVME_LINE = b"\r\nx-amz-checksum-crc64nvme: "
"""As Amazon writes what it keeps of every object since December 2024: found without the pass."""
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
"""Of the largest number that 64 bits hold."""
MD5_ETAG_ENCRYPTIONS = (b"", b"aes256")
"""Encryption with the store's own key, or none: the ETag is the MD5 of what was sent."""

Fields = dict[bytes, bytes]
"""Values by names in lower case; those of a name that comes again are joined by commas."""


def response_checksum(head: bytes, entry: Entry) -> Checksum | None:
    """The sum of the whole object, None where the head states none that can be relied on.

    Args:
        head: The answer to a GET or HEAD as it came, from the status line on, CRLF between its lines.
        entry: The object, as it was listed.
    """
    status = head[9:12]
    at = head.find(CRC64NVME_LINE)
    if at >= 0 and status == b"200" and (usual := _usual(head, at + len(CRC64NVME_LINE))):
        return usual
    lowered = head.lower()
    if b"\r\nx-" not in lowered and b"\r\ncontent-md5" not in lowered:
        return None
    fields = _fields(head)
    if status == b"200":
        return _amz(fields) or _anyway(fields, b"content-md5")
    if status == b"206" and fields.get(b"content-range", b"").rstrip().endswith(b"/%d" % entry.size):
        return _anyway(fields)
    return None


def _usual(head: bytes, start: int) -> Checksum | None:
    value = head[start : start + 14]
    return _base64(ChecksumKind.CRC64NVME, value[:12]) if value.endswith(b"\r\n") else None


def _fields(head: bytes) -> Fields:
    fields: Fields = {}
    for name, value in CHECKSUM_FIELDS.findall(head):
        known = name.lower()
        fields[known] = fields[known] + b"," + value if known in fields else value
    return fields


def _anyway(fields: Fields, *more: bytes) -> Checksum | None:
    """What is said of the whole object by answers with a part of it, too; `more` are fields with an MD5."""
    found = _goog(fields) or _oss(fields)
    for name in (*more, b"x-ms-blob-content-md5"):
        found = found or _base64(ChecksumKind.MD5, fields.get(name, b""))
    return found or _etag(fields)


def _amz(fields: Fields) -> Checksum | None:
    if fields.get(b"x-amz-checksum-type", b"").upper() == b"COMPOSITE":
        return None
    said = (_base64(kind, fields[name]) for name, kind in AMZ_FIELDS if name in fields)
    return next(filter(None, said), None)


def _goog(fields: Fields) -> Checksum | None:
    if b"x-goog-hash" not in fields or _unpacked(fields):
        return None
    parts = [part.partition(b"=") for part in fields[b"x-goog-hash"].split(b",")]
    said = {name.strip(): value for name, _, value in parts}
    return next(filter(None, (_base64(kind, said.get(name, b"")) for name, kind in GOOG_HASHES)), None)


def _unpacked(fields: Fields) -> bool:
    """Whether GCS keeps it packed and sent it unpacked: its hash is of what it keeps."""
    kept = fields.get(b"x-goog-stored-content-encoding", b"identity")
    return kept not in (b"identity", fields.get(b"content-encoding"))


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
        sealed = fields.get(b"x-oss-server-side-encryption", b"")
        return (
            fields.get(b"x-oss-object-type", b"").lower() == b"normal"
            and sealed.lower() in MD5_ETAG_ENCRYPTIONS
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
