"""What each request to a bucket of the imitation of OSS does, but for reading an object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree

from aiohttp import web

from tests.support.oss import documents
from tests.support.oss.bucket import Bucket, StoredObject
from tests.support.oss.errors import OssError
from tests.support.oss.signatures import Signed

ARCHIVED = ("Archive", "ColdArchive", "DeepColdArchive")
OBJECT_OPERATIONS = {
    ("GET", "uploadId"): "ListParts",
    ("POST", "uploads"): "InitiateMultipartUpload",
    ("PUT", "uploadId"): "UploadPart",
    ("POST", "uploadId"): "CompleteMultipartUpload",
    ("DELETE", "uploadId"): "AbortMultipartUpload",
}
USUAL = {"GET": "GetObject", "HEAD": "HeadObject", "PUT": "PutObject", "DELETE": "DeleteObject"}
BUCKET_OPERATIONS = {("GET", "uploads"): "ListMultipartUploads", ("POST", "delete"): "DeleteMultipleObjects"}


class Asked(NamedTuple):
    """A request whose signature is verified: what it names, its body, its bucket, and all buckets."""

    signed: Signed
    body: bytes
    bucket: Bucket
    buckets: Mapping[str, Bucket]


def operation_of(signed: Signed) -> str:
    """The name of a request in Alibaba's API reference."""
    names = {name for name, _ in signed.query}
    table = OBJECT_OPERATIONS if signed.key else BUCKET_OPERATIONS
    for (method, name), operation in table.items():
        if method == signed.method and name in names:
            return operation
    if signed.key:
        if signed.method == "PUT" and "x-oss-copy-source" in signed.headers:
            return "CopyObject"
        return USUAL.get(signed.method, "MethodNotAllowed")
    return "ListObjects" if signed.method == "GET" else "MethodNotAllowed"


def check_conditions(signed: Signed, stored: StoredObject) -> None:
    wanted = signed.headers.get("if-match")
    if wanted is not None and wanted.strip('"') != stored.etag.strip('"'):
        raise OssError("PreconditionFailed", Condition="If-Match")


def _check_free(asked: Asked) -> None:
    asked.bucket.check_free(asked.signed.key, asked.signed.headers.get("x-oss-forbid-overwrite", ""))


def _kept(stored: StoredObject, *names: str) -> dict[str, str]:
    return {name: value for name, value in stored.headers().items() if name in names}


def _parsed(body: bytes) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(body)  # noqa: S314 - of the tests themselves
    except ElementTree.ParseError:
        raise OssError("MalformedXML") from None


def head_object(asked: Asked) -> web.Response:
    stored = asked.bucket.get(asked.signed.key)
    check_conditions(asked.signed, stored)
    length = {"Content-Length": str(len(stored.data))}
    return web.Response(headers=stored.headers() | length)


def put_object(asked: Asked) -> web.Response:
    _check_free(asked)
    stored = asked.bucket.put(asked.signed.key, StoredObject(asked.body))
    return web.Response(headers=_kept(stored, "ETag", "x-oss-hash-crc64ecma", "x-oss-version-id"))


def copy_object(asked: Asked) -> web.Response:
    source = unquote(asked.signed.headers["x-oss-copy-source"]).lstrip("/")
    name, _, key = source.partition("/")
    if name not in asked.buckets:
        raise OssError("NoSuchBucket", BucketName=name)
    found = asked.buckets[name].get(key)
    if found.storage_class in ARCHIVED:
        raise OssError("InvalidObjectState", Key=key)
    _check_free(asked)
    stored = asked.bucket.put(asked.signed.key, StoredObject(found.data, found.kind, found.etag))
    return documents.xml(documents.copied(stored), _kept(stored, "x-oss-hash-crc64ecma"))


def delete_object(asked: Asked) -> web.Response:
    asked.bucket.objects.pop(asked.signed.key, None)
    return web.Response(status=204)


def delete_multiple_objects(asked: Asked) -> web.Response:
    if "content-md5" not in asked.signed.headers:
        raise OssError("MissingContentMD5")
    root = _parsed(asked.body)
    keys = [item.findtext("Key") or "" for item in root.iterfind("Object")]
    if not 0 < len(keys) <= 1000 or not all(keys):
        raise OssError("MalformedXML")
    for key in keys:
        asked.bucket.objects.pop(key, None)
    return documents.xml(documents.deleted([] if root.findtext("Quiet") == "true" else keys))


def list_objects(asked: Asked) -> web.Response:
    return documents.xml(documents.listing(asked.signed, asked.bucket))


def initiate_multipart_upload(asked: Asked) -> web.Response:
    _check_free(asked)
    return documents.xml(
        documents.begun(asked.signed.bucket, asked.signed.key, asked.bucket.begin(asked.signed.key))
    )


def upload_part(asked: Asked) -> web.Response:
    number = int(asked.signed.parameter("partNumber"))
    if not 1 <= number <= 10_000:
        raise OssError("InvalidArgument", "Part number must be an integer between 1 and 10000.")
    part = StoredObject(asked.body)
    asked.bucket.upload(asked.signed.key, asked.signed.parameter("uploadId")).parts[number] = part
    return web.Response(headers=_kept(part, "ETag", "x-oss-hash-crc64ecma"))


def list_parts(asked: Asked) -> web.Response:
    upload = asked.bucket.upload(asked.signed.key, asked.signed.parameter("uploadId"))
    return documents.xml(documents.parts(asked.signed, upload))


def list_multipart_uploads(asked: Asked) -> web.Response:
    return documents.xml(documents.uploads(asked.signed, asked.bucket))


def complete_multipart_upload(asked: Asked) -> web.Response:
    upload = asked.signed.parameter("uploadId")
    asked.bucket.upload(asked.signed.key, upload)
    _check_free(asked)
    items = _parsed(asked.body).iterfind("Part")
    listed = [(int(item.findtext("PartNumber") or 0), item.findtext("ETag") or "") for item in items]
    stored = asked.bucket.complete(asked.signed.key, upload, listed)
    return documents.xml(
        documents.completed(asked.signed, stored), _kept(stored, "x-oss-hash-crc64ecma", "x-oss-version-id")
    )


def abort_multipart_upload(asked: Asked) -> web.Response:
    asked.bucket.upload(asked.signed.key, asked.signed.parameter("uploadId"))
    del asked.bucket.uploads[asked.signed.parameter("uploadId")]
    return web.Response(status=204)


HANDLERS: Mapping[str, Callable[[Asked], web.Response]] = {
    "HeadObject": head_object,
    "PutObject": put_object,
    "CopyObject": copy_object,
    "DeleteObject": delete_object,
    "DeleteMultipleObjects": delete_multiple_objects,
    "ListObjects": list_objects,
    "InitiateMultipartUpload": initiate_multipart_upload,
    "UploadPart": upload_part,
    "ListParts": list_parts,
    "ListMultipartUploads": list_multipart_uploads,
    "CompleteMultipartUpload": complete_multipart_upload,
    "AbortMultipartUpload": abort_multipart_upload,
}
