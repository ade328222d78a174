"""Asks a holder for a dataset, waits while it fetches it, and reads files from it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from podferry.contract import cache_api
from podferry.contract.cache_api import Filling, HeldDataset, Holder, Refusal
from podferry.contract.errors import CredentialsMissing, FerryError
from podferry.contract.versioned_json import decode_document
from podferry.storage.credentials.refresh import RefreshedValue
from podferry.storage.http.blocking_get import BlockingGets, Response
from podferry.storage.http.blocking_response import BlockingResponse
from podferry.storage.lazy_log import warn
from podferry.storage.timeouts_and_limits import LIMITS, MIB, Limits

COMPLETE, PARTIAL, NOT_YET, MISSING, LATER = 200, 206, 202, 404, 503
MAX_DOCUMENT_BYTES = 1024 * MIB
"""Some ten million files."""
WAIT_SECONDS = 10.0
"""Of one request: below the time without a byte after which a connection counts as lost."""
START_SECONDS = 3.0
"""For a holder to listen: it may have been started with its readers."""
START_PAUSE_SECONDS = 0.1
BUSY_SECONDS = 20.0
"""For a holder that responds "later", such as while the API server reviews the tokens of many pods at once:
it gives up a review after 3 s."""
AWAY_SECONDS = 60.0
"""After a request for a file that had no response: a holder that hangs costs each request its whole time."""
STALL_SECONDS = 60.0
"""Without progress of a holder, until a reader takes the source: a store's own retries take less."""


class HolderUnavailable(Exception):
    """The holder does not have the dataset, or does not respond; the text is one line for the log."""


class HolderClient:
    """Requests to one holder; `now` is a monotonic clock in seconds."""

    def __init__(
        self, holder: Holder, limits: Limits = LIMITS, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.url = holder.url.rstrip("/")
        self._now, self._seconds = now, limits.request_seconds
        self._gets = BlockingGets(self.url, "", limits)
        self._away_until, self._has_warned = float("-inf"), False
        token = holder.token
        self.header_lines = RefreshedValue(lambda: _authorization(token)) if token is not None else None

    async def dataset(
        self, uri: str, on_filling: Callable[[Filling], None] = lambda filling: None
    ) -> HeldDataset:
        """A dataset of the holder; waits while it is fetched there, and calls `on_filling` meanwhile.

        Raises:
            HolderUnavailable: It has no such dataset, cannot fetch it, or makes no progress.
        """
        seen, since = Filling(), self._now()
        while True:
            status, body = await self._ask(cache_api.dataset_path(uri, WAIT_SECONDS))
            if status == COMPLETE:
                return self._held(body)
            if status != NOT_YET:
                raise HolderUnavailable(_reason(status, body))
            filling = msgspec.json.decode(body, type=Filling)
            if filling != seen:
                seen, since = filling, self._now()
            elif self._now() - since > STALL_SECONDS:
                done = f"{seen.bytes_done} of {seen.bytes} bytes"
                raise HolderUnavailable(f"no progress for {STALL_SECONDS:.0f} s: {done}")
            on_filling(filling)

    async def _ask(self, path: str) -> tuple[int, bytes]:
        """Status and body of a document; a holder that starts, starts again or is busy is waited for."""
        since, down_since = self._now(), None
        while True:
            try:
                status, headers, body = await self._get(path, {}, MAX_DOCUMENT_BYTES)
            except HolderUnavailable as error:
                # A holder that ends closes a request that may have waited; one that hangs has had its time.
                hangs = isinstance(error.__cause__, TimeoutError)
                down_since = self._now() if down_since is None else down_since
                if self._now() - (since if hangs else down_since) > START_SECONDS:
                    raise
                await asyncio.sleep(START_PAUSE_SECONDS)
                continue
            down_since = None
            pause = _pause_seconds(headers) if status == LATER else None
            if pause is None or self._now() - since + pause > BUSY_SECONDS:
                return status, body
            await asyncio.sleep(pause)

    async def read(self, digest: str, name: str, start: int, length: int) -> memoryview | None:
        """A range of a file, or None if the holder does not send exactly that, or has just not responded."""
        if self._now() < self._away_until:
            return None
        headers = {"Range": f"bytes={start}-{start + length - 1}"}
        try:
            status, _, body = await self._get(cache_api.file_path(digest, name), headers, length + 1)
        except HolderUnavailable as error:
            self._away_until = self._now() + AWAY_SECONDS
            self._warn("the cache does not respond: files are taken from the source", str(error))
            return None
        if status not in {COMPLETE, PARTIAL, MISSING}:
            self._warn("the cache refuses files: they are taken from the source", f"HTTP {status}")
        return memoryview(body) if status in {COMPLETE, PARTIAL} and len(body) == length else None

    def _warn(self, event: str, reason: str) -> None:
        """Log it, once."""
        if not self._has_warned:
            warn(event, holder=self.url, reason=reason)
        self._has_warned = True

    async def close(self) -> None:
        """Close the connections."""
        await self._gets.close()

    def _held(self, body: bytes) -> HeldDataset:
        try:
            held = decode_document(body, HeldDataset, cache_api.FORMAT, f"the dataset of {self.url}")
        except FerryError as error:
            raise HolderUnavailable(str(error)) from error
        if len(held.checksums) != held.manifest.files:
            raise HolderUnavailable(f"{len(held.checksums)} checksums of {held.manifest.files} files")
        return held

    async def _get(self, path: str, headers: Mapping[str, str], max_bytes: int) -> Response:
        if self.header_lines is not None:
            try:
                await self.header_lines.refresh()
            except CredentialsMissing as error:
                raise HolderUnavailable(str(error)) from error
            name, _, value = (self.header_lines.value or "").strip().partition(": ")
            headers = {**headers, name: value}

        def read(response: BlockingResponse) -> Response:
            return response.status, response.headers, response.read(max_bytes)

        try:
            return await self._gets.read(f"{self.url}{path}", headers, self._seconds, read)
        except OSError as error:
            raise HolderUnavailable(f"it does not respond: {error or type(error).__name__}") from error


def _authorization(token: Path) -> str:
    try:
        return f"Authorization: Bearer {token.read_text().strip()}\r\n"
    except OSError as error:
        remedy = "Mount a projected token there"
        raise CredentialsMissing.of("the token for the cache cannot be read", str(error), remedy) from error


def _pause_seconds(headers: Mapping[str, str]) -> float | None:
    """After how many seconds to ask again, at least one; None for never."""
    seconds = headers.get("retry-after", "")
    return max(float(seconds), 1.0) if seconds.isascii() and seconds.isdecimal() else None


def _reason(status: int, body: bytes) -> str:
    try:
        problems = msgspec.json.decode(body, type=Refusal).problems
    except msgspec.MsgspecError:
        return f"HTTP {status}"
    return "; ".join(map(str, problems)) or f"HTTP {status}"
