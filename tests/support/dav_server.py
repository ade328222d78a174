"""A WebDAV server of scripted responses, for what real ones do only when they are broken or hostile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from html import escape
from urllib.parse import quote, unquote, urlsplit

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def multistatus(*responses: str) -> str:
    return f'<?xml version="1.0"?><multistatus xmlns="DAV:">{"".join(responses)}</multistatus>'


def directory(path: str) -> str:
    kind = propstat("<resourcetype><collection/></resourcetype>")
    return f"<response><href>{escape(path)}</href>{kind}</response>"


def file(path: str, size: int | None = 1, tag: str = '"t"') -> str:
    length = "" if size is None else f"<getcontentlength>{size}</getcontentlength>"
    properties = f"<resourcetype/>{length}<getetag>{escape(tag)}</getetag>"
    return f"<response><href>{escape(path)}</href>{propstat(properties)}</response>"


def refused(path: str, status: int = 403) -> str:
    return f"<response><href>{escape(path)}</href><status>HTTP/1.1 {status} X</status></response>"


def propstat(properties: str) -> str:
    return f"<propstat><prop>{properties}</prop><status>HTTP/1.1 200 OK</status></propstat>"


class DavServer:
    """Files in memory; `answers` by method and path, by method, or by path, come first.

    Attributes:
        files: Content by path.
        directories: Paths, with a slash at their ends.
        requested: Methods and paths.
    """

    def __init__(self, answers: Mapping[str, Handler] | None = None) -> None:
        self.answers = dict(answers or {})
        self.files: dict[str, bytes] = {}
        self.directories = {"/"}
        self.locks: dict[str, str] = {}
        self.requested: list[str] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Respond to a request."""
        self.requested.append(f"{request.method} {request.path}")
        keys = (f"{request.method} {request.path}", request.method, request.path)
        handler = next((self.answers[key] for key in keys if key in self.answers), None)
        return await (handler or getattr(self, request.method.lower()))(request)

    async def propfind(self, request: web.Request) -> web.Response:
        path = request.path
        if path in self.files:
            return self._listing(file(quote(path), len(self.files[path])))
        top = f"{path.rstrip('/')}/"
        if top not in self.directories:
            return web.Response(status=404)
        found = [directory(quote(top))]
        if request.headers["Depth"] == "1":
            found += [file(quote(name), len(data)) for name, data in self.files.items() if _is_in(name, top)]
            found += [directory(quote(name)) for name in self.directories if _is_in(name.rstrip("/"), top)]
        return self._listing(*found)

    @staticmethod
    def _listing(*responses: str) -> web.Response:
        return web.Response(status=207, text=multistatus(*responses), content_type="application/xml")

    async def get(self, request: web.Request) -> web.Response:
        if request.path not in self.files:
            return web.Response(status=404)
        data, wanted = self.files[request.path], request.http_range
        if wanted.start is None:
            return web.Response(body=data, headers={"ETag": '"t"'})
        part = data[wanted]
        if not part:
            return web.Response(status=416)
        stated = f"bytes {wanted.start}-{wanted.start + len(part) - 1}/{len(data)}"
        return web.Response(status=206, body=part, headers={"ETag": '"t"', "Content-Range": stated})

    async def put(self, request: web.Request) -> web.Response:
        self.files[request.path] = await request.read()
        return web.Response(status=201)

    async def mkcol(self, request: web.Request) -> web.Response:
        path = request.path
        if path in self.directories:
            return web.Response(status=405)
        if f"{path.rstrip('/').rpartition('/')[0]}/" not in self.directories:
            return web.Response(status=409)
        self.directories.add(path)
        return web.Response(status=201)

    async def move(self, request: web.Request) -> web.Response:
        path = unquote(urlsplit(request.headers["Destination"]).path)
        if path in self.files and request.headers["Overwrite"] == "F":
            return web.Response(status=412)
        self.files[path] = self.files.pop(request.path)
        return web.Response(status=201)

    async def delete(self, request: web.Request) -> web.Response:
        return web.Response(status=404 if self.files.pop(request.path, None) is None else 204)

    async def lock(self, request: web.Request) -> web.Response:
        if request.path in self.locks:
            return web.Response(status=423)
        self.locks[request.path] = token = f"<opaquelocktoken:{len(self.requested)}>"
        self.files.setdefault(request.path, b"")
        return web.Response(status=201, headers={"Lock-Token": token})

    async def unlock(self, request: web.Request) -> web.Response:
        held = self.locks.pop(request.path, "")
        return web.Response(status=204 if held == request.headers["Lock-Token"] else 409)


def _is_in(path: str, top: str) -> bool:
    return path != top.rstrip("/") and path.rpartition("/")[0] == top.rstrip("/")
