"""Who may read from a holder: pods with a token for it, of namespaces that it names."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from base64 import urlsafe_b64decode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec
import structlog

from podferry.cache.holder.token_budget import TokenBudget
from podferry.contract import cache_api
from podferry.contract.cache_api import AUDIENCE
from podferry.contract.errors import (
    AccessDenied,
    FerryError,
    PermanentError,
    TemporaryError,
    Throttled,
    Unavailable,
)
from podferry.webhook.cluster.failure_log import FailureLog

log = structlog.get_logger(__name__)
CACHE_SECONDS = 30.0
"""For how long an answer of the API server counts, a refusal too: a deleted pod's token dies this late."""
MAX_CACHED = 10_000
"""Tokens whose answers are kept, a few MB."""
MAX_REVIEWS = 8
"""At a time."""
POD_NAME, NODE_NAME = "authentication.kubernetes.io/pod-name", "authentication.kubernetes.io/node-name"
TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""Source: RFC 6750, section 2.1. Anything else is not worth a question to the API server."""
ACCOUNT_PARTS = 4
"""Of the user name `system:serviceaccount:NAMESPACE:NAME`."""

ReviewToken = Callable[[str, str], Awaitable[Mapping[str, Any]]]
"""The status of a TokenReview, by token and audience."""


class Reader(msgspec.Struct, frozen=True):
    """Who has sent a token.

    Attributes:
        namespace: Of its service account.
        pod, node: Where it runs; empty if unknown.
        account: Its service account.
    """

    namespace: str
    pod: str = ""
    node: str = ""
    account: str = ""


class Unauthenticated(AccessDenied):
    """A request has no token that is valid here."""


class TooManyTokens(Throttled):
    """An address has sent many tokens that are not valid."""


class Readers:
    """Knows the pods by their tokens.

    Args:
        review: Asks the API server about a token.
        namespaces: Globs over the namespaces whose pods may read.
        now: A monotonic clock in seconds.
        holders: The service account of all holders, as in a token; None if there are no others.
    """

    def __init__(
        self,
        review: ReviewToken,
        namespaces: Sequence[str],
        now: Callable[[], float] = time.monotonic,
        holders: str | None = None,
    ) -> None:
        self._review, self._namespaces, self._now, self._holders = review, namespaces, now, holders
        self._budget = TokenBudget(now)
        self._reviews = asyncio.Semaphore(MAX_REVIEWS)
        self._failures = FailureLog(log, "error", "tokens cannot be reviewed: readers take the source")
        self._cached: dict[bytes, tuple[float, asyncio.Future[Reader | None]]] = {}

    def is_holder(self, reader: Reader) -> bool:
        """Whether it is another holder of the same cache."""
        return subject(reader.namespace, reader.account) == self._holders

    async def check(self, authorization: str, address: str = "") -> Reader:
        """The reader of a request.

        Args:
            authorization: The value of the header field, or an empty text.
            address: Where the request comes from.

        Raises:
            Unauthenticated: There is no valid token.
            AccessDenied: Its pod's namespace may not read.
            TooManyTokens: The address has sent too many that are not valid.
            Unavailable: The API server does not respond.
            PermanentError: The holder itself may not ask it.
        """
        kind, _, token = authorization.partition(" ")
        is_token = kind.lower() == "bearer" and TOKEN.fullmatch(token.strip())
        reader = await self._known(token.strip(), address) if is_token else None
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

    async def _known(self, token: str, address: str) -> Reader | None:
        """The reader of a token, asked for once in `CACHE_SECONDS`, however many requests have it."""
        key, now = _key(token), self._now()
        expires, found = self._cached.get(key, (0.0, None))
        if found is None or now >= expires:
            if found is None and not self._budget.spend(address):
                remedy = "Wait, and send a valid token"
                raise TooManyTokens.of("too many tokens that are not valid", address, remedy)
            found = asyncio.ensure_future(self._ask(token, address, is_new=found is None))
            self._forget(now)
            self._cached[key] = now + CACHE_SECONDS, found
        try:
            return await asyncio.shield(found)
        except FerryError:
            self._cached.pop(key, None)
            raise

    async def _ask(self, token: str, address: str, *, is_new: bool) -> Reader | None:
        try:
            async with self._reviews:
                reader = reader_of(await self._review(token, AUDIENCE))
        except FerryError as error:  # nothing is known of the token
            self._budget.give_back(address)
            self._failures.failed(error)
            kind = Unavailable if isinstance(error, TemporaryError) else PermanentError
            raise kind.of("the holder cannot verify tokens, and its log says why") from error
        self._failures.succeeded()
        if is_new and reader is not None:
            self._budget.give_back(address)
            if reader.pod:  # who looks at the status has a new token each time
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
    return Reader(parts[2], pod, node, parts[3])


def subject(namespace: str, account: str) -> str:
    """The name of a service account in tokens and in their reviews."""
    return f"system:serviceaccount:{namespace}:{account}"


def token_subject(token: str) -> str | None:
    """Whose token it is, as it says itself; None if it does not. Source: RFC 7519, sections 4.1.2 and 7.2."""
    try:
        claims = token.split(".")[1]
        decoded = msgspec.json.decode(urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
        return str(decoded["sub"])
    except (IndexError, KeyError, TypeError, ValueError):
        return None


def refusal_status(error: FerryError) -> int:
    """The status of HTTP for an error of `Readers.check`."""
    if isinstance(error, Unauthenticated):
        return 401
    if isinstance(error, TooManyTokens):
        return 429
    return 403 if isinstance(error, AccessDenied) else 503


def retry_seconds(error: FerryError) -> float | None:
    """After how many seconds a request may succeed that this error has refused; None for never."""
    if isinstance(error, TooManyTokens):
        return CACHE_SECONDS
    return cache_api.RETRY_AFTER_SECONDS if isinstance(error, TemporaryError) else None
