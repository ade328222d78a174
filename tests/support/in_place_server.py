"""A web server whose files are overwritten in place while it sends them; like nginx, it reads on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web


async def nothing(name: str) -> None:
    """Nobody overwrites anything."""


class InPlaceServer:
    """Sends the first half of a response, calls `between`, and sends the second half as it is by then.

    Attributes:
        files: Content by name.
        versions: The tag of a name that has been overwritten; `0` of the others.
        removed: Names without a file; one that is being sent stays open.
        between: Called with the name.
        requests: Methods and names.
    """

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files, self.versions, self.removed = files, dict[str, str](), set[str]()
        self.between: Callable[[str], Awaitable[None]] = nothing
        self.requests: list[str] = []

    async def overwrite(self, name: str) -> None:
        """The next version, of the same size."""
        self.files[name] = bytes(byte ^ 1 for byte in self.files[name])
        self.versions[name] = f"{int(self.versions.get(name, '0')) + 1}"

    def tag(self, name: str) -> str:
        return f'"{self.versions.get(name, "0")}"'

    async def handle(self, request: web.Request) -> web.StreamResponse:
        name, wanted = request.match_info["path"], request.http_range
        self.requests.append(f"{request.method} {name}")
        if name not in self.files.keys() - self.removed:
            return web.Response(status=404)
        first, end, total = wanted.start or 0, wanted.stop or len(self.files[name]), len(self.files[name])
        response = web.StreamResponse(status=206 if "Range" in request.headers else 200)
        response.headers["ETag"], response.content_length = self.tag(name), end - first
        if response.status == 206:
            response.headers["Content-Range"] = f"bytes {first}-{end - 1}/{total}"
        await response.prepare(request)
        if request.method == "GET":
            middle = (first + end) // 2
            await response.write(self.files[name][first:middle])
            await self.between(name)
            await response.write(self.files[name][middle:end])
        return response
