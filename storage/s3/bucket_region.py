"""Asks an S3 service for the region of a bucket."""

from __future__ import annotations

import aiohttp

from podferry.storage.http.connector import Connector
from podferry.storage.network.tls import tls_context
from podferry.storage.s3.endpoint import S3Access
from podferry.storage.s3.response import BUCKET_REGION_HEADER
from podferry.storage.timeouts_and_limits import Limits


async def bucket_region(access: S3Access, limits: Limits) -> str:
    """The region, or empty if the service does not say.

    S3 states it in the response to an unsigned HEAD of the bucket, whether it permits it or not. obstore
    reports neither the headers nor, for 301, the body of a response.
    """
    proxy = access.network.proxies.proxy_for(access.bucket_url)
    timeout = aiohttp.ClientTimeout(total=limits.connect_seconds)
    connector = Connector(ssl=tls_context(access.network.ca.pem))
    try:
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
            session.head(
                access.bucket_url, allow_redirects=False, proxy=proxy.url if proxy else None
            ) as response,
        ):
            return response.headers.get(BUCKET_REGION_HEADER, "")
    except (aiohttp.ClientError, OSError):
        return ""
