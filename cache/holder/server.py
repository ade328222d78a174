"""The HTTP handlers of a holder: a thin shell around its stages. Contract: `podferry.contract.cache_api`."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from podferry.cache.holder.active_readers import ActiveReaders
from podferry.cache.holder.file_response import SENDFILE_BYTES, send_file, sent_bytes
from podferry.cache.holder.holder_stage import HolderStage
from podferry.cache.holder.readers import Reader, Readers, refusal_status, retry_seconds
from podferry.cache.holder.small_files import HOLDER_FIELD, TOKEN_FIELD, SmallRequest
from podferry.cache.holder.small_reads import Content, open_bundle, read_bundle, read_small
from podferry.cache.holder.version import Version
from podferry.contract import cache_api
from podferry.contract.cache_api import Asker, HolderStatus, Refusal
from podferry.contract.errors import FerryError, Problem
from podferry.contract.versioned_json import encode_json

JSON = "application/json"
READING = (cache_api.DATASET_PATH, cache_api.FILES_PATH, cache_api.BUNDLES_PATH)
"""Where the paths of readers' requests begin."""
OF_HOLDERS = (cache_api.PROGRESS_PATH, cache_api.REFRESH_PATH)
"""For holders, and for who may act as their account."""
MAX_NUMBER = 1e15
FROM_HOLDER: ContextVar[bool] = ContextVar("from_holder")
"""Whether another holder has sent the request, which is no reader."""
ASKER: ContextVar[Reader | None] = ContextVar("asker")
"""The pod that has sent the request, if its namespace counts: it is no holder."""
RETRY_AFTER = {"Retry-After": str(cache_api.RETRY_AFTER_SECONDS)}


class HolderServer:
    """The handlers.

    Args:
        stages: The datasets.
        node: Where the holder runs, for its status.
        readers: Who may read; None for everybody who can connect.
    """

    def __init__(self, stages: Sequence[HolderStage], node: str, readers: Readers | None = None) -> None:
        self._stages, self._node, self._readers = stages, node, readers
        self._active = ActiveReaders()
        self._waiting: set[asyncio.Task[object]] = set()
        self.served_bytes = 0

    def application(self) -> web.Application:
        """The routes."""
        app = web.Application(middlewares=[self._authorize])
        app.router.add_get(cache_api.DATASET_PATH, self.dataset)
        app.router.add_get(f"{cache_api.FILES_PATH}/{{digest}}/{{name:.+}}", self.file)
        app.router.add_get(f"{cache_api.BUNDLES_PATH}/{{digest}}/{{name}}", self.bundle)
        app.router.add_get(cache_api.PROGRESS_PATH, self.progress)
        app.router.add_post(cache_api.REFRESH_PATH, self.refresh)
        app.router.add_get(cache_api.STATUS_PATH, self.status)
        app.router.add_get(cache_api.HEALTH_PATH, self.health)
        app.on_shutdown.append(self._end_waits)
        return app

    @contextmanager
    def _ended_at_shutdown(self) -> Iterator[None]:
        """A request that waits here does not delay the end of the holder."""
        waiting = {task} if (task := asyncio.current_task()) else set()
        self._waiting |= waiting
        try:
            yield
        finally:
            self._waiting -= waiting

    async def _end_waits(self, _: web.Application) -> None:
        for task in self._waiting:
            task.cancel()

    @web.middleware
    async def _authorize(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        name, is_holder, reader = request.remote or "", True, None
        if self._readers is not None and request.path != cache_api.HEALTH_PATH:
            try:
                reader = await self._readers.check(_authorization(request.headers), name)
            except FerryError as error:
                return _json(refusal_status(error), Refusal(error.problems), _retry_after(error))
            name, is_holder = f"{reader.namespace}/{reader.pod}", self._readers.is_holder(reader)
        if request.path in OF_HOLDERS and not is_holder:
            problem = Problem("only holders of the cache may send this request", name)
            return _json(403, Refusal((problem,)))
        FROM_HOLDER.set(is_holder and cache_api.HOLDER_HEADER in request.headers)
        ASKER.set(None if is_holder else reader)
        if not request.path.startswith(READING) or FROM_HOLDER.get():
            return await handler(request)
        with self._active.request(name):
            return await handler(request)

    async def dataset(self, request: web.Request) -> web.Response:
        """The manifest and checksums of a dataset; waits until the holder has it."""
        uri = request.query.get("uri", "")
        stage = self._stage(uri)
        if stage is None:
            return self._unknown(uri)
        with self._ended_at_shutdown():
            await stage.wait(_wait_seconds(request))
        if stage.complete is not None:
            return web.Response(body=stage.complete.body, content_type=JSON)
        if stage.failure is not None:
            return _json(503, Refusal(stage.failure.problems))
        return _json(202, stage.filling, RETRY_AFTER)

    def _stage(self, uri: str) -> HolderStage | None:
        return next((one for one in self._stages if one.uri == uri), None)

    def _unknown(self, uri: str) -> web.Response:
        remedy = f"It has {', '.join(one.uri for one in self._stages)}"
        return _json(404, Refusal((Problem("the holder does not have this dataset", uri, remedy),)))

    async def progress(self, request: web.Request) -> web.Response:
        """What the holder has of a dataset, for another one."""
        query, uri = request.query, request.query.get("uri", "")
        stage = self._stage(uri)
        if stage is None:
            return self._unknown(uri)
        asker = Asker(query.get("holder", ""), query.get("digest", ""))
        known = query.get("log", ""), int(_number(request, "since"))
        with self._ended_at_shutdown():
            found = await stage.progress(asker, *known, _wait_seconds(request))
        if stage.failure is not None:
            return _json(503, Refusal(stage.failure.problems))
        return self._unknown(uri) if found is None else _json(200, found)

    async def file(self, request: web.Request) -> web.StreamResponse:
        """A file that the holder has, or a range of it."""
        digest, name = request.match_info["digest"], request.match_info["name"]
        for stage in self._stages:
            found = stage.file(digest, name, for_holder=FROM_HOLDER.get())
            if found is None:
                continue
            try:
                response = await send_file(request, found.open, found.entry)
            except FileNotFoundError:
                break
            except (ConnectionError, TimeoutError):  # the reader has left or stalled: no error here
                if request.transport is not None:
                    request.transport.abort()
                return web.Response()
            self.served_bytes += sent_bytes(request, response)
            return response
        return _json(404, Refusal((Problem("the holder does not have this file", name),)))

    async def bundle(self, request: web.Request) -> web.Response:
        """Many small files; see `podferry.contract.bundle`."""
        version = self._version(request.match_info["digest"])
        body = None if version is None else read_bundle(version, request.match_info["name"])
        if body is None:
            problem = Problem("the holder does not have these files, or they are too much for one response")
            return _json(404, Refusal((problem,)))
        self.served_bytes += len(body)
        return web.Response(body=body)

    def _version(self, digest: str) -> Version | None:
        return next(filter(None, (stage.versions.find(digest) for stage in self._stages)), None)

    def small_file(self, request: SmallRequest, address: str) -> Content | None:
        """A small file, or many, for a reader that is known; None if `file` or `bundle` is to answer."""
        reader, is_holder = address, True
        if self._readers is not None:
            known = self._readers.known(_authorization(request.fields))
            if known is None:
                return None
            reader, is_holder = f"{known.namespace}/{known.pod}", self._readers.is_holder(known)
        from_holder = is_holder and HOLDER_FIELD in request.fields
        found = self._bundle(request) if request.is_bundle else self._small(request, for_holder=from_holder)
        if found is not None:
            self.served_bytes += found.length
            if not from_holder:
                with self._active.request(reader):
                    pass
        return found

    def _bundle(self, request: SmallRequest) -> Content | None:
        version = self._version(request.digest)
        return None if version is None else open_bundle(version, request.name)

    def _small(self, request: SmallRequest, *, for_holder: bool) -> Content | None:
        for stage in self._stages:
            found = stage.file(request.digest, request.name, for_holder=for_holder)
            if found is not None and found.entry.size < SENDFILE_BYTES:
                body = read_small(found.path, found.entry.size)
                return None if body is None else Content(len(body), iter((body,)))
        return None

    async def refresh(self, request: web.Request) -> web.Response:
        """Have the source of a dataset listed again."""
        uri = request.query.get("uri", "")
        stage = self._stage(uri)
        if stage is None:
            return self._unknown(uri)
        stage.ask_refresh()
        return _json(202, stage.filling)

    async def status(self, _: web.Request) -> web.Response:
        """What it holds, and its readers: of one of them, those in its own namespace."""
        failures = (one for stage in self._stages for one in (stage.failure, stage.refresh_failure))
        problems = tuple(problem for one in failures if one is not None for problem in one.problems)
        complete = tuple(stage.uri for stage in self._stages if stage.complete is not None)
        datasets = tuple(stage.status for stage in self._stages)
        in_place = (name for stage in self._stages for name in stage.readers)
        asker = ASKER.get()
        own = "" if asker is None else f"{asker.namespace}/"
        readers = (*(name for name in self._active.names() if name.startswith(own)), *in_place)
        refreshing = tuple(stage.uri for stage in self._stages if stage.refreshing)
        found = HolderStatus(self._node, datasets, complete, problems, self.served_bytes, readers, refreshing)
        return _json(200, found)

    async def health(self, _: web.Request) -> web.Response:
        """The process runs."""
        return web.Response(text="ok\n")


def _retry_after(error: FerryError) -> dict[str, str]:
    seconds = retry_seconds(error)
    return {} if seconds is None else {"Retry-After": f"{seconds:.0f}"}


def _authorization(fields: Mapping[str, str]) -> str:
    """What identifies a reader, by the header's fields in lower case or in any."""
    token = fields.get(TOKEN_FIELD)
    return fields.get("authorization", "") if token is None else f"Bearer {token}"


def _wait_seconds(request: web.Request) -> float:
    return min(_number(request, "wait"), cache_api.MAX_WAIT_SECONDS)


def _number(request: web.Request, field: str) -> float:
    """A field of the query, at least 0."""
    try:
        number = float(request.query.get(field, "0"))
    except ValueError:
        number = math.nan
    if math.isnan(number):  # a timer of the loop that is due at no time would keep others from their turn
        raise web.HTTPBadRequest(text=f"{field} must be a number\n")
    return min(max(number, 0.0), MAX_NUMBER)


def _json(status: int, document: msgspec.Struct, headers: dict[str, str] | None = None) -> web.Response:
    body = encode_json(document)
    return web.Response(status=status, body=body, content_type=JSON, headers=headers)
