"""Opens fsspec file systems, and closes the connections that they leave open."""

from __future__ import annotations

import asyncio
import logging
import ssl
from contextlib import suppress
from typing import Any

import aiohttp
import fsspec.asyn
import fsspec.core
from aiohttp.client import DEFAULT_TIMEOUT
from fsspec.dircache import DirCache

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import Uri
from podferry.storage.errors.connection_failure import openssl_failure
from podferry.storage.fsspec.install_hints import missing_package
from podferry.storage.fsspec.options import GOOGLE_SCHEMES, TLS, Options
from podferry.storage.http.connector import Connector
from podferry.storage.retries import pauses
from podferry.storage.timeouts_and_limits import Limits

SESSION_ATTRIBUTES = ("_s3creator", "_session")
"""Attributes with the HTTP session of s3fs and gcsfs, which have no public way to close it."""
logging.getLogger("gcsfs").addHandler(logging.NullHandler())
"""Else Python prints the traceback that gcsfs logs of each failure, which is reported in words."""
CLOSE_SECONDS = 5
"""Timeout for closing a session: nothing is sent, but the loop may be busy."""


def open_file_system(uri: Uri, options: Options, limits: Limits) -> tuple[Any, str]:
    """The file system of a URI, and the path of the bucket in it. Blocks: many connect at once.

    `limits` are those of gcsfs's connections; others have them among their options.

    Raises:
        UnknownScheme: What it depends on is not installed.
        InvalidSpec: It does not accept an option.
        What the file system raises if it cannot connect.
    """
    try:
        file_system, root = fsspec.core.url_to_fs(f"{uri.scheme}://{uri.bucket}/", **options)
    except ImportError as error:
        # Some file systems import their dependencies only now.
        raise missing_package(uri) from error
    except TypeError as error:
        what = f"the file system of {uri.scheme}:// does not accept its options"
        measured = f"{error}; given: {', '.join(sorted(options))}"
        remedy = f"Check the variables FSSPEC_{uri.scheme.upper()}_…"
        raise InvalidSpec.of(what, measured, remedy) from error
    # As an option, this would reach constructors that do not know it.
    file_system.dircache = DirCache(use_listings_cache=False)
    file_system.use_listings_cache = False
    if uri.scheme in GOOGLE_SCHEMES:
        _set_connector(file_system, limits)
    return file_system, root


class _HandshakeFailed(Exception):
    """A TLS handshake that would fail again. gcsfs repeats aiohttp's exceptions for half a minute."""


class _NeverReached(Exception):
    """No connection was made. gcsfs repeats aiohttp's exceptions, in half a minute or more for each call."""


class _Connector(Connector):
    def __init__(self, limits: Limits, **options: Any) -> None:
        super().__init__(**options)
        self._limits, self._reached = limits, False

    async def connect(self, *args: Any, **options: Any) -> Any:
        """See `aiohttp.BaseConnector.connect`. Until one succeeds, attempts are repeated here."""
        again = pauses(self._limits.retries, self._limits.retry_seconds)
        while True:
            try:
                return await self._connect(*args, **options)
            except _NeverReached:
                pause = next(again, None)
                if pause is None:
                    raise
            await asyncio.sleep(pause)

    async def _connect(self, *args: Any, **options: Any) -> Any:
        try:
            connection = await super().connect(*args, **options)
        except aiohttp.ClientSSLError as error:
            cause = error.__cause__
            if isinstance(cause, ssl.SSLError) and openssl_failure(cause):
                raise _HandshakeFailed from cause
            raise
        except (aiohttp.ClientConnectorError, TimeoutError) as error:
            if self._reached:  # an outage, for which gcsfs has patience
                raise
            raise _NeverReached from error
        self._reached = True
        return connection


def _set_connector(file_system: Any, limits: Limits) -> None:
    """Give gcsfs's session a connector, with the certificates of the options."""
    given = {"timeout": _timeout(limits), **file_system.session_kwargs}
    context = given.pop(TLS, None)
    if context or not getattr(file_system, "_use_client_cert", False):  # then gcsfs makes its own

        async def connector() -> aiohttp.TCPConnector:
            """Make it on the loop that uses it."""
            return _Connector(limits, ssl=context or True)

        given["connector"] = fsspec.asyn.sync(file_system.loop, connector)
    file_system.session_kwargs = given


def _timeout(limits: Limits) -> aiohttp.ClientTimeout:
    """Those of aiohttp, which would wait half a minute for a connection."""
    return aiohttp.ClientTimeout(total=DEFAULT_TIMEOUT.total, sock_connect=limits.connect_seconds)


def close_file_system(file_system: Any) -> None:
    """Close the connections of a file system; errors are ignored, as nothing is left that could be lost.

    Otherwise they are closed when it is garbage-collected: at any time, in any thread, and perhaps on a loop
    that is not the session's own.
    """
    with suppress(Exception):
        if getattr(file_system, "async_impl", False):
            _close_session(file_system)


def _close_session(fs: Any) -> None:
    sessions = (getattr(fs, name, None) for name in SESSION_ATTRIBUTES)
    session = next((found for found in sessions if found is not None), None)
    if session is not None:
        fsspec.asyn.sync(fs.loop, session.__aexit__, None, None, None, timeout=CLOSE_SECONDS)
        # A transport closes its socket one iteration of the loop later.
        fsspec.asyn.sync(fs.loop, asyncio.sleep, 0, timeout=CLOSE_SECONDS)
