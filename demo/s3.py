"""A small S3 server over files: objects, conditional writes, copies and listings of one bucket.

Source: Amazon S3's API reference, the operations GetObject, HeadObject, PutObject, CopyObject, DeleteObject,
DeleteObjects, ListObjectsV2, and those of multipart uploads. Anything else is answered with 501.
"""

from __future__ import annotations

import asyncio
import hashlib
import html
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from urllib.parse import unquote
from xml.sax.saxutils import escape

from aiohttp import web

from demo.listing import Page, page_of
from demo.multipart import InvalidPartError, UnknownUploadError, Uploads

MOST_BYTES = 64 << 20
KEY_IN_XML = re.compile(r"<Key>(.*?)</Key>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Stored:
    """An object: its file, and what a listing says of it."""

    path: Path
    size: int
    tag: str
    modified: datetime


class S3Error(Exception):
    """What S3 answers when it does not do as it was asked."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status, self.code = status, code


NOT_FOUND = S3Error(404, "NoSuchKey")
PRECONDITION_FAILED = S3Error(412, "PreconditionFailed")
NOT_MODIFIED = S3Error(304, "NotModified")
UNKNOWN = S3Error(501, "NotImplemented")


class Bucket:
    """The objects of one bucket. Each write is one step of the loop, so conditions are atomic."""

    def __init__(self, name: str, folder: Path) -> None:
        self._name, self._folder, self._count = name, folder, 0
        self._objects: dict[str, Stored] = {}
        self._uploads = Uploads()
        self._calls = {"GET": self._get, "HEAD": self._get, "PUT": self._put, "DELETE": self._delete}

    async def answer(self, request: web.Request) -> web.Response:
        """Any request."""
        body = await request.read()
        path = unquote(request.raw_path.partition("?")[0])
        bucket, _, key = path.lstrip("/").partition("/")
        try:
            self._check_bucket(bucket)
            return self._object(request, key, body) if key else self._bucket(request, body)
        except S3Error as error:
            text = "" if error.status == NOT_MODIFIED.status else f"<Error><Code>{error.code}</Code></Error>"
            return web.Response(status=error.status, text=text, content_type="application/xml")

    def _check_bucket(self, name: str) -> None:
        if name != self._name:
            raise S3Error(404, "NoSuchBucket")

    def _object(self, request: web.Request, key: str, body: bytes) -> web.Response:
        call = self._calls.get(request.method)
        if {"uploads", "uploadId"} & set(request.query):
            return self._upload(request, key, body)
        if call is None:
            raise UNKNOWN
        self._check(request, self._objects.get(key))
        return call(request, key, body)

    def _check(self, request: web.Request, stored: Stored | None) -> None:
        """Check `If-Match` and `If-None-Match`."""
        match, none_match = (request.headers.get(name) for name in ("If-Match", "If-None-Match"))
        if match is not None:
            if stored is None:
                raise NOT_FOUND
            if match not in ("*", stored.tag):
                raise PRECONDITION_FAILED
        if none_match is not None and stored is not None and none_match in ("*", stored.tag):
            raise PRECONDITION_FAILED if request.method == "PUT" else NOT_MODIFIED

    def _get(self, request: web.Request, key: str, _: bytes) -> web.Response:
        if key not in self._objects:
            raise NOT_FOUND
        stored = self._objects[key]
        headers = {
            "ETag": stored.tag,
            "Last-Modified": format_datetime(stored.modified, usegmt=True),
            "Accept-Ranges": "bytes",
            "x-amz-request-id": "demo",
        }
        if request.method == "HEAD":
            return web.Response(headers={**headers, "Content-Length": str(stored.size)})
        if "Range" not in request.headers:
            return web.Response(body=stored.path.read_bytes(), headers=headers)
        start, stop, _step = request.http_range.indices(stored.size)
        if start >= stop:
            raise S3Error(416, "InvalidRange")
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{stored.size}"
        return web.Response(status=206, body=stored.path.read_bytes()[start:stop], headers=headers)

    def _put(self, request: web.Request, key: str, body: bytes) -> web.Response:
        source = request.headers.get("x-amz-copy-source")
        if source is None:
            return web.Response(headers={"ETag": self._store(key, body).tag})
        copied = self._objects.get(unquote(source).lstrip("/").partition("/")[2])
        if copied is None:
            raise NOT_FOUND
        tag = self._store(key, copied.path.read_bytes()).tag
        return _xml(f"<CopyObjectResult><ETag>{escape(tag)}</ETag></CopyObjectResult>")

    def _store(self, key: str, body: bytes) -> Stored:
        self._count += 1
        path = self._folder / str(self._count)
        path.write_bytes(body)
        tag = hashlib.md5(body, usedforsecurity=False).hexdigest()
        self._remove(key)
        self._objects[key] = Stored(path, len(body), f'"{tag}"', datetime.now(UTC))
        return self._objects[key]

    def _remove(self, key: str) -> None:
        removed = self._objects.pop(key, None)
        if removed is not None:
            removed.path.unlink()

    def _delete(self, _request: web.Request, key: str, _body: bytes) -> web.Response:
        self._remove(key)
        return web.Response(status=204)

    def _upload(self, request: web.Request, key: str, body: bytes) -> web.Response:
        """A request of a multipart upload."""
        try:
            return self._upload_step(request, key, body)
        except UnknownUploadError:
            raise S3Error(404, "NoSuchUpload") from None
        except InvalidPartError:
            raise S3Error(400, "InvalidPart") from None

    def _upload_step(self, request: web.Request, key: str, body: bytes) -> web.Response:
        upload = request.query.get("uploadId", "")
        match request.method:
            case "POST" if not upload:
                begun = self._uploads.begin(key)
                return _xml(
                    f"<InitiateMultipartUploadResult><UploadId>{begun}</UploadId></InitiateMultipartUploadResult>"
                )
            case "PUT" if "x-amz-copy-source" not in request.headers:
                tag = self._uploads.send(key, upload, int(request.query["partNumber"]), body)
                return web.Response(headers={"ETag": f'"{tag}"'})
            case "POST":
                tag = self._store(key, self._uploads.complete(key, upload, body)).tag
                return _xml(
                    "<CompleteMultipartUploadResult>"
                    f"<ETag>{escape(tag)}</ETag></CompleteMultipartUploadResult>"
                )
            case "DELETE":
                self._uploads.forget(key, upload)
                return web.Response(status=204)
            case "GET":
                self._uploads.parts(key, upload)
                return _xml("<ListPartsResult></ListPartsResult>")
        raise UNKNOWN

    def _bucket(self, request: web.Request, body: bytes) -> web.Response:
        if request.method == "POST" and "delete" in request.query:
            keys = KEY_IN_XML.findall(body.decode())
            for key in keys:
                self._remove(html.unescape(key))
            deleted = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
            return _xml(f"<DeleteResult>{deleted}</DeleteResult>")
        if request.method == "GET" and request.query.get("list-type") == "2":
            return self._list(request)
        raise UNKNOWN

    def _list(self, request: web.Request) -> web.Response:
        query = request.query
        after = query.get("continuation-token") or query.get("start-after", "")
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        page = page_of(self._objects, prefix, delimiter, after, int(query.get("max-keys", "1000")))
        return _xml(self._listed(page))

    def _listed(self, page: Page) -> str:
        contents = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>{stored.modified.isoformat()}</LastModified>"
            f"<ETag>{escape(stored.tag)}</ETag><Size>{stored.size}</Size></Contents>"
            for key, stored in ((key, self._objects[key]) for key in page.keys)
        )
        prefixes = "".join(
            f"<CommonPrefixes><Prefix>{escape(prefix)}</Prefix></CommonPrefixes>" for prefix in page.prefixes
        )
        more = f"<NextContinuationToken>{escape(page.token)}</NextContinuationToken>" if page.token else ""
        count = len(page.keys) + len(page.prefixes)
        return (
            f"<ListBucketResult><IsTruncated>{'true' if page.token else 'false'}</IsTruncated>"
            f"<KeyCount>{count}</KeyCount>{more}{contents}{prefixes}</ListBucketResult>"
        )


def _xml(text: str) -> web.Response:
    return web.Response(text=f'<?xml version="1.0" encoding="UTF-8"?>{text}', content_type="application/xml")


async def serve(bucket: str, folder: Path, announce: Callable[[str], None]) -> None:
    """Serve an empty bucket on loopback until standard input ends; `announce` hears the URL."""
    app = web.Application(client_max_size=MOST_BYTES)
    app.router.add_route("*", "/{path:.*}", Bucket(bucket, folder).answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    announce(f"http://127.0.0.1:{runner.addresses[0][1]}")
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()
