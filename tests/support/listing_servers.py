"""Servers in this process that list what they are given, well or badly."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape

from aiohttp import web

from tests.support.dav_server import DavServer

NAMES = ("d/a", "d/sub/b", "d/sub/c")


def s3_page(
    names: Iterable[str], *, prefixes: Iterable[str] = (), more: bool = False, token: str = ""
) -> str:
    """A page of S3's ListObjectsV2. Source: Amazon S3 API reference."""
    objects = "".join(
        f"<Contents><Key>{escape(name)}</Key><LastModified>2026-11-22T22:47:00.000Z</LastModified>"
        f"<ETag>&quot;0&quot;</ETag><Size>1</Size></Contents>"
        for name in names
    )
    objects += "".join(f"<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>" for name in prefixes)
    following = f"<NextContinuationToken>{token}</NextContinuationToken>" if token else ""
    truncated = f"<IsTruncated>{str(more).lower()}</IsTruncated>"
    return f"<ListBucketResult><Name>bucket</Name>{truncated}{following}{objects}</ListBucketResult>"


def azure_page(names: Iterable[str], *, marker: str = "") -> str:
    """A page of Azure's List Blobs. Source: Blob service REST API."""
    objects = "".join(
        f"<Blob><Name>{escape(name)}</Name><Properties><Content-Length>1</Content-Length><Etag>0x0</Etag>"
        f"<Last-Modified>Sun, 22 Nov 2026 22:47:00 GMT</Last-Modified>"
        f"<Content-Type>text/plain</Content-Type></Properties></Blob>"
        for name in names
    )
    following = f"<NextMarker>{marker}</NextMarker>"
    return f"<EnumerationResults><Blobs>{objects}</Blobs>{following}</EnumerationResults>"


class ListedBucket:
    """A bucket of `d/00000` and so on, as S3 servers of different quality list it.

    Attributes:
        page_objects: Of a page, at most.
        tokens: Whether a page says where the next one begins.
        start_after: Whether it begins behind a name.
        asked: Queries, in order.
    """

    def __init__(
        self, count: int, *, page_objects: int = 1000, tokens: bool = True, start_after: bool = True
    ) -> None:
        self.names = [f"d/{number:05}" for number in range(count)]
        self.page_objects, self.tokens, self.start_after = page_objects, tokens, start_after
        self.asked: list[dict[str, str]] = []

    async def answer(self, request: web.Request) -> web.Response:
        query = dict(request.query)
        self.asked.append(query)
        after = query.get("continuation-token") or (query.get("start-after", "") if self.start_after else "")
        names = [name for name in self.names if name > after and name.startswith(query.get("prefix", ""))]
        found, more = names[: self.page_objects], len(names) > self.page_objects
        return xml(s3_page(found, more=more, token=found[-1] if more and self.tokens else ""))


class ListingServer:
    """Lists `NAMES`: one object a page, or one directory a page.

    Attributes:
        refused: Whether it does not list what comes after the first page.
    """

    def __init__(self) -> None:
        self.refused = True

    async def s3(self, request: web.Request) -> web.Response:
        """S3, ListObjectsV2. Source: Amazon S3 API reference."""
        if request.method == "HEAD" or "prefix" not in request.query:
            return web.Response(status=404)
        names, following = self._page(request.query["prefix"], request.query.get("continuation-token", ""))
        if names is None:
            return web.Response(status=403, text="<Error><Code>AccessDenied</Code></Error>")
        return xml(s3_page(names, more=bool(following), token=following))

    async def azure(self, request: web.Request) -> web.Response:
        """Azure, List Blobs. Source: Blob service REST API."""
        if request.query.get("comp") != "list":
            return web.Response(status=404)
        names, following = self._page(request.query.get("prefix", ""), request.query.get("marker", ""))
        if names is None:
            return web.Response(status=403, text="<Error><Code>AuthorizationFailure</Code></Error>")
        return xml(azure_page(names, marker=following))

    async def webdav(self, request: web.Request) -> web.StreamResponse:
        """A WebDAV server. Source: RFC 4918."""
        if request.path == "/d/sub/" and self.refused:
            return web.Response(status=403)
        server = DavServer()
        server.files = {f"/{name}": b"1" for name in NAMES}
        server.directories |= {"/d/", "/d/sub/"}
        return await server.handle(request)

    async def index(self, request: web.Request) -> web.Response:
        """A web server with index pages."""
        if request.path == "/d":
            raise web.HTTPMovedPermanently("/d/")
        if request.path == "/d/":
            return web.Response(text='<a href="a">a</a> <a href="sub/">sub/</a>', content_type="text/html")
        if request.path == "/d/sub/":
            if self.refused:
                return web.Response(status=403)
            return web.Response(text='<a href="b">b</a> <a href="c">c</a>', content_type="text/html")
        found = request.path[1:] in NAMES
        return web.Response(body=b"1" if found else b"", status=200 if found else 404)

    def _page(self, prefix: str, after: str) -> tuple[list[str] | None, str]:
        names = [name for name in NAMES if name.startswith(prefix) and name > after]
        if self.refused and any("sub" in name for name in names[:1]):
            return None, ""
        return names[:1], names[0] if len(names) > 1 else ""


def xml(text: str) -> web.Response:
    """A response of S3 or Azure."""
    return web.Response(text=text, content_type="application/xml")
