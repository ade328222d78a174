"""A body is sent once: aiohttp repeats a PUT whose connection breaks, and does not say how much had arrived.

The server may still hold the first request, and refuse the second one as locked; of an iterator, the second
one has only what is left. The caller repeats the upload instead: under another name, from the first byte.
"""

from __future__ import annotations

import errno
import os

import aiohttp


async def sent_once(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """See `aiohttp.ClientMiddlewareType`. aiohttp repeats only what failed with an error of its own.

    Raises:
        ConnectionResetError: The connection broke in the middle of a request with a body.
    """
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise  # nothing was sent
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        if not request.body:
            raise
        number = getattr(error, "errno", None) or errno.ECONNRESET
        raise ConnectionResetError(number, os.strerror(number)) from error
