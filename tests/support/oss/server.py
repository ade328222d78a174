"""The server of the imitation of OSS: what each request does, for signed requests alone.

Run it with `python -m tests.support.oss.server HOST PORT [FOLDER [SECONDS]]`: the bucket `bucket` has the
files of a folder, and each response is that many seconds late. `serving` starts a server in a thread.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

from aiohttp import web

from tests.support.oss.bucket import Bucket, StoredObject
from tests.support.oss.errors import ELSEWHERE, OssError
from tests.support.oss.operations import ARCHIVED, HANDLERS, Asked, check_conditions, operation_of
from tests.support.oss.signatures import Account, Signed, raw_query, verify

REGION = "cn-hangzhou"
KEY_ID, KEY_SECRET = "key-of-tests", "secret-of-tests"
ADDRESS = re.compile(r"[\d.]+|\[.*\]|localhost")
RANGE = re.compile(r"bytes=(\d*)-(\d*)")


class OssServer:
    """Buckets, accounts, and faults to set.

    Attributes:
        accounts: By access key.
        anonymous: Buckets that anybody may read.
        denied: Operations that no account has the permission for, such as `ListObjects`.
        elsewhere: Buckets of other endpoints, with these.
        shift: Seconds by which the server's clock is ahead.
        delay: Seconds before each response, as a network has them.
        cuts: How many more responses with objects are cut in the middle.
        damages: How many more bodies of uploads are damaged on their way.
        busy: How many more requests are refused for their rate.
        requests: What was asked: method, operation, path with query, headers.
        roles: Tokens that may assume the role, by its ARN.
        endpoint: Of the running server.
    """

    def __init__(self) -> None:
        self.buckets = {"bucket": Bucket()}
        self.accounts = {KEY_ID: Account(KEY_SECRET)}
        self.anonymous: set[str] = set()
        self.denied: set[str] = set()
        self.elsewhere: dict[str, str] = {}
        self.shift = self.delay = 0.0
        self.cuts = self.damages = self.busy = 0
        self.requests: list[tuple[str, str, str, dict[str, str]]] = []
        self.roles: dict[str, str] = {}
        self.endpoint = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The response to any request."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        try:
            signed = _signed(request, headers)
            body = await request.read()
            if self.delay:
                await asyncio.sleep(self.delay)
            if signed.parameter("Action"):
                return self._assume_role(signed, body)
            operation = operation_of(signed)
            self.requests.append((request.method, operation, request.raw_path, headers))
            return await self._perform(request, operation, signed, body)
        except OssError as error:
            if request.method == "HEAD":
                return web.Response(status=error.status, headers=error.header(request.host))
            return web.Response(
                status=error.status, body=error.body(request.host), content_type="application/xml"
            )

    async def _perform(
        self, request: web.Request, operation: str, signed: Signed, body: bytes
    ) -> web.StreamResponse:
        if self.busy:
            self.busy -= 1
            raise OssError("QpsLimitExceeded")
        known = verify(signed, self.accounts, REGION, self.shift)
        if signed.bucket in self.elsewhere:
            raise OssError(
                "AccessDenied", ELSEWHERE, Bucket=signed.bucket, Endpoint=self.elsewhere[signed.bucket]
            )
        bucket = self.buckets.get(signed.bucket)
        if bucket is None:
            raise OssError("NoSuchBucket", BucketName=signed.bucket)
        reads = operation in {"GetObject", "HeadObject", "ListObjects"}
        if operation in self.denied or not (known or (reads and signed.bucket in self.anonymous)):
            raise OssError("AccessDenied")
        if operation == "GetObject":
            return await self._get(request, signed, bucket.get(signed.key))
        if self.damages and operation in {"PutObject", "UploadPart"} and body:
            self.damages -= 1
            body = bytes([body[0] ^ 1]) + body[1:]
        _check_md5(signed, body)
        handler = HANDLERS.get(operation)
        if handler is None:
            raise OssError("NotImplemented")
        return handler(Asked(signed, body, bucket, self.buckets))

    async def _get(self, request: web.Request, signed: Signed, stored: StoredObject) -> web.StreamResponse:
        if stored.storage_class in ARCHIVED:
            raise OssError("InvalidObjectState", Key=signed.key)
        check_conditions(signed, stored)
        start, stop = _range(signed, len(stored.data))
        headers, status = stored.headers(), 200
        if (start, stop) != (0, len(stored.data)) or signed.headers.get("x-range-applied"):
            headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(stored.data)}"
            headers.pop("Content-MD5", None)
            status = 206
        body = stored.data[start:stop]
        if not self.cuts:
            return web.Response(status=status, body=body, headers=headers)
        self.cuts -= 1
        response = web.StreamResponse(status=status, headers=headers | {"Content-Length": str(len(body))})
        await response.prepare(request)
        await response.write(body[: len(body) // 2])
        assert request.transport is not None
        request.transport.close()
        return response

    def _assume_role(self, signed: Signed, body: bytes) -> web.Response:
        """AssumeRoleWithOIDC of Alibaba's STS, which needs no signature."""
        asked = dict([*signed.query, *raw_query(body.decode().replace("+", " "))])
        if asked.get("Action") != "AssumeRoleWithOIDC" or asked.get("Version") != "2015-04-01":
            return _sts_error(404, "InvalidAction.NotFound", "Specified api is not found.")
        if self.roles.get(asked.get("RoleArn", "")) != asked.get("OIDCToken"):
            return _sts_error(400, "AuthenticationFail.OIDCToken.Invalid", "The OIDC token is invalid.")
        key, seconds = f"STS.{len(self.accounts)}", int(asked["DurationSeconds"])
        self.accounts[key] = Account(f"secret-{key}", f"token+of/{key}=", time.time() + seconds)
        until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
        credentials = {"AccessKeyId": key, "AccessKeySecret": f"secret-{key}", "Expiration": until}
        credentials["SecurityToken"] = f"token+of/{key}="
        return web.json_response({"RequestId": "0", "Credentials": credentials})


def _sts_error(status: int, code: str, message: str) -> web.Response:
    return web.json_response({"Code": code, "Message": message, "RequestId": "0"}, status=status)


def _signed(request: web.Request, headers: dict[str, str]) -> Signed:
    """What a request names: the host or the first part of the path has the bucket."""
    path, _, query = request.raw_path.partition("?")
    host, path = headers.get("host", "").rpartition(":")[0] or headers.get("host", ""), unquote(path)[1:]
    if ADDRESS.fullmatch(host):
        bucket, _, key = path.partition("/")
    else:
        bucket, key = host.partition(".")[0], path
    return Signed(request.method, bucket, key, raw_query(query), headers)


def _check_md5(signed: Signed, body: bytes) -> None:
    stated = signed.headers.get("content-md5")
    digest = hashlib.md5(body, usedforsecurity=False).digest()
    try:
        if stated is not None and base64.b64decode(stated, validate=True) != digest:
            raise OssError("InvalidDigest")
    except binascii.Error:
        raise OssError("InvalidDigest") from None


def _range(signed: Signed, size: int) -> tuple[int, int]:
    """What to send. An invalid range is ignored, unless the request asks for HTTP's own behaviour."""
    match = RANGE.fullmatch(signed.headers.get("range", ""))
    standard = signed.headers.get("x-oss-range-behavior") == "standard"
    if match is None or not any(match.groups()):
        return 0, size
    first, last = match.groups()
    start = int(first) if first else max(0, size - int(last))
    stop = int(last) + 1 if first and last else size
    if start >= size or start >= stop:
        if standard:
            raise OssError("InvalidRange", ActualObjectSize=str(size), RangeHeader=match[0])
        return 0, size
    if stop > size and not standard:
        return 0, size
    signed.headers["x-range-applied"] = "1"
    return start, min(stop, size)


async def _identify(request: web.Request, response: web.StreamResponse) -> None:
    """Every response of OSS has an identifier, and its name."""
    response.headers["x-oss-request-id"] = "5CAC41EE0000000000000000"
    response.headers["Server"] = "AliyunOSS"


async def started(server: OssServer, host: str = "127.0.0.1", port: int = 0) -> web.AppRunner:
    """Start the server in the running loop."""
    app = web.Application(client_max_size=5 << 30)
    app.router.add_route("*", "/{path:.*}", server.answer)
    app.on_response_prepare.append(_identify)
    runner = web.AppRunner(app, shutdown_timeout=0.1, auto_decompress=False)
    await runner.setup()
    await web.TCPSite(runner, host, port).start()
    server.endpoint = f"http://{f'[{host}]' if ':' in host else host}:{runner.addresses[0][1]}"
    return runner


@contextmanager
def serving(server: OssServer | None = None, host: str = "127.0.0.1") -> Iterator[OssServer]:
    """A server in a thread of its own, for clients that block."""
    server, loop = server or OssServer(), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    runner = asyncio.run_coroutine_threadsafe(started(server, host), loop).result()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _serve(host: str, port: int, folder: str = "", delay: str = "0") -> None:
    server = OssServer()
    server.delay = float(delay)
    for path in Path(folder).rglob("*") if folder else ():
        if path.is_file():
            key = path.relative_to(folder).as_posix()
            server.buckets["bucket"].put(key, StoredObject(path.read_bytes()))
    await started(server, host, port)
    print(json.dumps({"endpoint": server.endpoint, "server": "an imitation of OSS"}), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
