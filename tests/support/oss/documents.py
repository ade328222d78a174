"""The XML that the imitation of OSS sends, without a namespace: Alibaba's SDK reads none.

Source: the examples of Alibaba's OSS API reference.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Iterable
from urllib.parse import quote
from xml.sax.saxutils import escape

from aiohttp import web

from tests.support.oss.bucket import MAX_KEYS, Bucket, StoredObject, Upload
from tests.support.oss.errors import OssError
from tests.support.oss.signatures import Signed


def xml(document: str, headers: dict[str, str] | None = None) -> web.Response:
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n{document}'
    return web.Response(body=text.encode(), content_type="application/xml", headers=headers)


def element(name: str, text: object) -> str:
    return f"<{name}>{escape(str(text))}</{name}>"


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(seconds))


def listing(signed: Signed, bucket: Bucket) -> str:
    """Versions 1 and 2 of a listing. The token of version 2 is encoded like the names, if these are."""
    second = signed.parameter("list-type") == "2"
    encoded = signed.parameter("encoding-type") == "url"
    prefix, delimiter = signed.parameter("prefix"), signed.parameter("delimiter")
    token = signed.parameter("continuation-token") if second else ""
    behind = _behind(token) or signed.parameter("start-after" if second else "marker")
    count = int(signed.parameter("max-keys") or 100)
    page = bucket.page(prefix, delimiter, behind, count)

    def name(text: str) -> str:
        return quote(text, safe="/") if encoded else text

    parts = [element("Name", signed.bucket), element("Prefix", name(prefix)), element("MaxKeys", count)]
    parts += [element("Delimiter", name(delimiter)), element("EncodingType", "url") if encoded else ""]
    parts.append(element("IsTruncated", str(bool(page.behind)).lower()))
    if second:
        parts.append(element("StartAfter", name(signed.parameter("start-after"))))
        parts.append(element("KeyCount", len(page.objects) + len(page.prefixes)))
    else:
        parts.append(element("Marker", name(behind)))
    if page.behind:
        following = base64.b64encode(page.behind.encode()).decode()
        parts.append(
            element("NextContinuationToken", quote(following, safe="") if encoded else following)
            if second
            else element("NextMarker", name(page.behind))
        )
    for key, stored in page.objects:
        parts.append(_content(name(key), stored))
    parts += (f"<CommonPrefixes>{element('Prefix', name(found))}</CommonPrefixes>" for found in page.prefixes)
    return f"<ListBucketResult>{''.join(parts)}</ListBucketResult>"


def _behind(token: str) -> str:
    try:
        return base64.b64decode(token, validate=True).decode()
    except ValueError:
        raise OssError("InvalidArgument", "The continuation-token is invalid.") from None


def _content(key: str, stored: StoredObject) -> str:
    fields = {
        "Key": key,
        "LastModified": _time(stored.modified),
        "ETag": stored.etag,
        "Type": stored.kind,
        "Size": len(stored.data),
        "StorageClass": stored.storage_class,
    }
    return f"<Contents>{''.join(element(name, value) for name, value in fields.items())}</Contents>"


def begun(bucket: str, key: str, upload: str) -> str:
    inner = element("Bucket", bucket) + element("Key", key) + element("UploadId", upload)
    return f"<InitiateMultipartUploadResult>{inner}</InitiateMultipartUploadResult>"


def parts(signed: Signed, upload: Upload) -> str:
    behind = int(signed.parameter("part-number-marker") or 0)
    count = int(signed.parameter("max-parts") or MAX_KEYS)
    numbers = [number for number in sorted(upload.parts) if number > behind]
    listed = "".join(_part(number, upload.parts[number]) for number in numbers[:count])
    inner = element("Bucket", signed.bucket) + element("Key", upload.key)
    inner += element("UploadId", signed.parameter("uploadId")) + element("MaxParts", count)
    inner += element("IsTruncated", str(len(numbers) > count).lower())
    inner += element("NextPartNumberMarker", numbers[:count][-1] if numbers[:count] else 0)
    return f"<ListPartsResult>{inner}{listed}</ListPartsResult>"


def _part(number: int, part: StoredObject) -> str:
    fields = {
        "PartNumber": number,
        "LastModified": _time(part.modified),
        "ETag": part.etag,
        "HashCrc64ecma": part.crc,
        "Size": len(part.data),
    }
    return f"<Part>{''.join(element(name, value) for name, value in fields.items())}</Part>"


def uploads(signed: Signed, bucket: Bucket) -> str:
    listed = "".join(
        f"<Upload>{element('Key', upload.key)}{element('UploadId', name)}"
        f"{element('Initiated', _time(time.time()))}</Upload>"
        for name, upload in bucket.uploads.items()
    )
    inner = element("Bucket", signed.bucket) + element("IsTruncated", "false")
    return f"<ListMultipartUploadsResult>{inner}{listed}</ListMultipartUploadsResult>"


def completed(signed: Signed, stored: StoredObject) -> str:
    inner = element("Bucket", signed.bucket) + element("Key", signed.key) + element("ETag", stored.etag)
    return f"<CompleteMultipartUploadResult>{inner}</CompleteMultipartUploadResult>"


def copied(stored: StoredObject) -> str:
    inner = element("LastModified", _time(stored.modified)) + element("ETag", stored.etag)
    return f"<CopyObjectResult>{inner}</CopyObjectResult>"


def deleted(keys: Iterable[str]) -> str:
    inner = "".join(f"<Deleted>{element('Key', key)}</Deleted>" for key in keys)
    return f"<DeleteResult>{inner}</DeleteResult>"
