"""An imitation of the Hugging Face Hub: what its own client sends to read repositories, from a folder.

Large files are at another server, to which the Hub redirects. Sources: huggingface_hub, `hf_api.py`,
`file_download.py` and `utils/_http.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from aiohttp import web
from yarl import URL

from tests.support.patience import PATIENCE

LARGE = 1000
"""Bytes from which a file is at the other server."""
TREE = re.compile(r"/tree/([^/]+)(?:/(.*))?")


@dataclass
class Repo:
    """A repository.

    Attributes:
        revisions: Commits by branch or tag.
        commits: Files by commit.
        access: The tokens that may read it; empty for everybody.
        gated: Tokens that are known and may not.
    """

    revisions: dict[str, str]
    commits: dict[str, dict[str, bytes]]
    access: frozenset[str] = frozenset()
    gated: frozenset[str] = frozenset()


@cache
def git_identity(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


@cache
def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass
class HubServer:
    """The Hub and the server of large files.

    Attributes:
        repositories: By kind and name: `datasets/org/name`.
        storage: URL of the other server.
        url: URL of the Hub.
        page: Members of a page of a listing.
        objects: Large files by their SHA-256.
        requested: Methods and paths.
        leaked: Requests to the other server with credentials.
    """

    repositories: dict[str, Repo]
    storage: str = ""
    url: str = ""
    page: int = 1000
    objects: dict[str, bytes] = field(default_factory=dict)
    requested: list[str] = field(default_factory=list)
    leaked: list[str] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Respond as the Hub."""
        self.requested.append(f"{request.method} {request.path}")
        path = request.url.raw_path
        is_api = path.startswith("/api/")
        found = self._repository(path.removeprefix("/api") if is_api else path)
        if found is None:
            return self._error(request, 404, "RepoNotFound", "Repository not found")
        repository, rest = found
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if refused := self._refused(request, repository, token):
            return refused
        return await self._answer(request, repository, URL(rest, encoded=True).path if rest else "")

    async def stored(self, request: web.Request) -> web.StreamResponse:
        """Respond as the server of large files."""
        if "Authorization" in request.headers:
            self.leaked.append(request.path)
        if not self.objects:
            repositories = self.repositories.values()
            found = (
                data for each in repositories for files in each.commits.values() for data in files.values()
            )
            self.objects = {sha256(data): data for data in found}
        data = self.objects[request.path.rpartition("/")[2]]
        return self._ranged(request, data, {"ETag": '"of the storage"'})

    def _repository(self, path: str) -> tuple[Repo, str] | None:
        for name, repository in self.repositories.items():
            for written in (f"/{name}", f"/{name.removeprefix('models/')}"):
                if path == written or path.startswith(f"{written}/"):
                    return repository, path.removeprefix(written)
        return None

    def _refused(self, request: web.Request, repository: Repo, token: str) -> web.Response | None:
        if not repository.access or token in repository.access:
            return None
        if token in repository.gated:
            return self._error(request, 403, "GatedRepo", "Access to this dataset is restricted")
        if token:
            return self._error(request, 401, "", "Invalid credentials in Authorization header")
        if repository.gated:
            return self._error(request, 401, "GatedRepo", "You must be authenticated to access it")
        return self._error(request, 401, "RepoNotFound", "Repository not found")

    async def _answer(self, request: web.Request, repository: Repo, rest: str) -> web.StreamResponse:
        kind, _, argument = rest.removeprefix("/").partition("/")
        if kind in {"tree", "resolve"}:
            revision, _, path = argument.partition("/")
        else:
            revision, path = argument, ""
        commit = repository.revisions.get(revision, revision)
        files = repository.commits.get(commit)
        if files is None:
            return self._error(request, 404, "RevisionNotFound", f"Invalid rev id: {revision}")
        if kind == "revision":
            return web.json_response({"id": "x", "sha": commit, "siblings": []})
        if kind == "tree":
            return self._tree(request, files, path)
        if kind == "paths-info":
            as_json = request.content_type == "application/json"
            wanted = await request.json() if as_json else dict(await request.post())
            paths = wanted["paths"] if isinstance(wanted["paths"], list) else [wanted["paths"]]
            return web.json_response(
                [each for each in self._members(files, "", True) if each["path"] in paths]
            )
        return self._resolve(request, files, commit, path)

    def _tree(self, request: web.Request, files: dict[str, bytes], path: str) -> web.Response:
        recursive = request.query.get("recursive", "").lower() == "true"
        found = self._members(files, path, recursive)
        if not found:
            return self._error(request, 404, "EntryNotFound", f"{path} does not exist")
        start = int(request.query.get("cursor", "0"))
        following = request.url.update_query(cursor=str(start + self.page))
        more = {"Link": f'<{following}>; rel="next"'} if start + self.page < len(found) else {}
        return web.json_response(found[start : start + self.page], headers=more)

    @staticmethod
    def _members(files: dict[str, bytes], path: str, recursive: bool) -> list[dict]:
        top = f"{path}/" if path else ""
        members: dict[str, dict] = {}
        for name, data in sorted(files.items()):
            if not name.startswith(top):
                continue
            parts = name.removeprefix(top).split("/")
            for depth in range(1, len(parts)):
                above = top + "/".join(parts[:depth])
                if recursive or depth == 1:
                    members[above] = {"type": "directory", "path": above, "oid": "0" * 40, "size": 0}
            if recursive or len(parts) == 1:
                members[name] = {"type": "file", "path": name, "oid": git_identity(data), "size": len(data)}
                if len(data) >= LARGE:
                    digest = sha256(data)
                    members[name]["lfs"] = {"oid": digest, "size": len(data), "pointerSize": 130}
        return list(members.values())

    def _resolve(self, request: web.Request, files: dict[str, bytes], commit: str, path: str) -> web.Response:
        if path not in files:
            return self._error(request, 404, "EntryNotFound", "Entry not found")
        data, headers = files[path], {"X-Repo-Commit": commit}
        if len(data) < LARGE:
            return self._ranged(request, data, {**headers, "ETag": f'"{git_identity(data)}"'})
        digest = sha256(data)
        headers |= {"X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(len(data))}
        return web.Response(status=302, headers={**headers, "Location": f"{self.storage}/objects/{digest}"})

    @staticmethod
    def _ranged(request: web.Request, data: bytes, headers: dict[str, str]) -> web.Response:
        wanted = request.http_range
        if wanted.start is None:
            return web.Response(body=data, headers=headers)
        part = data[wanted]
        if not part:
            return web.Response(status=416)
        stated = f"bytes {wanted.start}-{wanted.start + len(part) - 1}/{len(data)}"
        return web.Response(status=206, body=part, headers={**headers, "Content-Range": stated})

    @staticmethod
    def _error(request: web.Request, status: int, code: str, message: str) -> web.Response:
        headers = {"X-Error-Message": message} | ({"X-Error-Code": code} if code else {})
        return web.json_response({"error": message}, status=status, headers=headers)


async def start(server: HubServer, port: int = 0, host: str = "127.0.0.1") -> list[web.AppRunner]:
    """Start both servers, the Hub on this port; sets their URLs."""
    runners, urls = list[web.AppRunner](), list[str]()
    for handler, its_port in ((server.stored, 0), (server.handle, port)):
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", handler)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, host, its_port).start()
        urls.append(f"http://{host}:{runner.addresses[0][1]}")
        runners.append(runner)
    server.storage, server.url = urls
    return runners


@contextlib.contextmanager
def serving(repositories: dict[str, Repo]) -> Iterator[HubServer]:
    """Both servers in a thread; `url` is that of the Hub."""
    server, loop = HubServer(repositories), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    runners = asyncio.run_coroutine_threadsafe(start(server), loop).result(PATIENCE)
    try:
        yield server
    finally:
        for runner in runners:
            asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(PATIENCE)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)
        loop.close()


def repository_of(folder: Path) -> Repo:
    """A repository with the files of a folder."""
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return Repo({"main": "1" * 40}, {"1" * 40: files})


async def main(folder: Path, port: int, host: str = "127.0.0.1") -> None:
    """Serve each directory of a folder as the dataset `sets/NAME`, until the process is ended."""
    repositories = {f"datasets/sets/{each.name}": repository_of(each) for each in folder.iterdir()}
    await start(HubServer(repositories), port, host)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]))
