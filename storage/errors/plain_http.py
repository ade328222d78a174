"""Whether plain HTTP was sent to a port that requires TLS.

Servers answer that with 400 in their own words, close the connection, or send a TLS alert. A handshake is
certain.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from podferry.storage.errors.translate import StoreLocation
from podferry.storage.network.proxies import DEFAULT_PORTS
from podferry.storage.network.tls import speaks_tls

if TYPE_CHECKING:
    from podferry.storage.errors.vendor_fields import VendorFields

NO_ANSWER = {
    os.strerror(number).lower() for number in (errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH)
}
"""Reasons of failures where nobody answered: a handshake would only wait as long once more."""
PROBE_SECONDS = 3.0


async def requires_tls(location: StoreLocation, fields: VendorFields) -> bool:
    """Whether an error comes from a port that speaks TLS; connects to it if it may be one."""
    split = urlsplit(location.endpoint)
    if split.scheme != "http" or not split.hostname or location.proxy or not _is_suspect(fields):
        return False
    return await speaks_tls(split.hostname, split.port or DEFAULT_PORTS["http"], PROBE_SECONDS)


def _is_suspect(fields: VendorFields) -> bool:
    from podferry.storage.errors.vendor_fields import HTTP_ERROR_REASONS  # noqa: PLC0415 - for errors only

    if fields.status:
        return fields.status == 400 and not fields.code
    return fields.reason not in NO_ANSWER | {HTTP_ERROR_REASONS["Connect"], HTTP_ERROR_REASONS["Timeout"]}
