"""Who may read from a holder: pods with a token for it, of namespaces that it names."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec
import structlog

from podferry.contract.cache_api import AUDIENCE
from podferry.contract.errors import AccessDenied, FerryError

log = structlog.get_logger(__name__)
CACHE_SECONDS = 30.0
"""For how long an answer of the API server counts, a refusal too: a deleted pod's token dies this late."""
MAX_CACHED = 10_000
"""Tokens whose answers are kept, a few MB."""
POD_NAME, NODE_NAME = "authentication.kubernetes.io/pod-name", "authentication.kubernetes.io/node-name"
TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""Source: RFC 6750, section 2.1. Anything else is not worth a question to the API server."""
ACCOUNT_PARTS = 4
"""Of the user name `system:serviceaccount:NAMESPACE:NAME`."""

ReviewToken = Callable[[str, str], Awaitable[Mapping[str, Any]]]
"""The status of a TokenReview, by token and audience."""


class Reader(msgspec.Struct, frozen=True):
    """A pod that reads: its namespace, its name and its node; the last two are empty if unknown."""

    namespace: str
    pod: str = ""
    node: str = ""


class Unauthenticated(AccessDenied):
    """A request has no token that is valid here."""


class Readers:
    """Knows the pods by their tokens.

    Args:
        review: Asks the API server about a token.
        namespaces: Globs over the namespaces whose pods may read.
        now: A monotonic clock in seconds.
    """

    def __init__(
        self, review: ReviewToken, namespaces: Sequence[str], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._review, self._namespaces, self._now = review, namespaces, now
        self._cached: dict[bytes, tuple[float, asyncio.Future[Reader | None]]] = {}

    async def check(self, authorization: str) -> Reader:
        """The reader of a request.

        Args:
            authorization: The value of the header field, or an empty text.

        Raises:
            Unauthenticated: There is no valid token.
            AccessDenied: Its pod's namespace may not read.
            Unavailable: The API server does not respond.
        """
        kind, _, token = authorization.partition(" ")
        is_token = kind.lower() == "bearer" and TOKEN.fullmatch(token.strip())
        reader = await self._known(token.strip()) if is_token else None
        if reader is None:
            remedy = f"Mount a projected service account token with the audience {AUDIENCE}"
            raise Unauthenticated.of("the cache needs a valid token", "", remedy)
        if not self._may_read(reader):
            remedy = "Ask an administrator to add it to the cache's readers"
            raise AccessDenied.of("the namespace may not read from this cache", reader.namespace, remedy)
        return reader

    def known(self, authorization: str) -> Reader | None:
        """The reader of a request that may read, if no question to the API server is needed; else None."""
        kind, _, token = authorization.partition(" ")
        expires, found = self._cached.get(_key(token.strip()), (0.0, None))
        is_current = kind.lower() == "bearer" and self._now() < expires
        if found is None or not is_current or not found.done() or found.cancelled() or found.exception():
            return None
        reader = found.result()
        return reader if reader is not None and self._may_read(reader) else None

    def _may_read(self, reader: Reader) -> bool:
        return any(fnmatchcase(reader.namespace, glob) for glob in self._namespaces)

    async def _known(self, token: str) -> Reader | None:
        """The reader of a token, asked for once in `CACHE_SECONDS`, however many requests have it."""
        key, now = _key(token), self._now()
        expires, found = self._cached.get(key, (0.0, None))
        if found is None or now >= expires:
            found = asyncio.ensure_future(self._ask(token, is_new=found is None))
            self._forget(now)
            self._cached[key] = now + CACHE_SECONDS, found
        try:
            return await asyncio.shield(found)
        except FerryError:
            self._cached.pop(key, None)
            raise

    async def _ask(self, token: str, *, is_new: bool) -> Reader | None:
        reader = reader_of(await self._review(token, AUDIENCE))
        if is_new and reader is not None:
            log.info("reader", namespace=reader.namespace, pod=reader.pod, node=reader.node)
        return reader

    def _forget(self, now: float) -> None:
        if len(self._cached) >= MAX_CACHED:
            self._cached = {key: one for key, one in self._cached.items() if one[0] > now}
        while len(self._cached) >= MAX_CACHED:
            self._cached.pop(next(iter(self._cached)))


def _key(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def reader_of(status: Mapping[str, Any]) -> Reader | None:
    """The reader that a TokenReview's status names, or None if the token is not valid for the cache.

    An API server that does not know audiences leaves them out: its answer says nothing about this one.
    """
    user = status.get("user") or {}
    parts = str(user.get("username", "")).split(":")
    if not status.get("authenticated") or AUDIENCE not in (status.get("audiences") or ()):
        return None
    if len(parts) != ACCOUNT_PARTS or parts[:2] != ["system", "serviceaccount"]:
        return None
    extra = user.get("extra") or {}
    pod, node = ((extra.get(name) or [""])[0] for name in (POD_NAME, NODE_NAME))
    return Reader(parts[2], pod, node)


def refusal_status(error: FerryError) -> int:
    """The status of HTTP for an error of `Readers.check`."""
    if isinstance(error, Unauthenticated):
        return 401
    return 403 if isinstance(error, AccessDenied) else 503
