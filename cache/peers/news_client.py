"""Asks other holders for their news."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import msgspec

from podferry.contract.cache_api import FORMAT, Asker, Progress, Refusal, progress_path
from podferry.contract.errors import FerryError, Unavailable
from podferry.contract.versioned_json import decode_document

NEWS_SECONDS = 5.0
"""Of one request, if there is nothing new."""
TIMEOUT = aiohttp.ClientTimeout(total=30.0, sock_connect=2.0, sock_read=2 * NEWS_SECONDS)
"""Another holder is near, and answers from memory."""


class NewsClient:
    """Asks other holders of one dataset; `close` it.

    Args:
        uri: Of the dataset.
        asker: Who asks.
        token: A file with a bearer token, which the kubelet renews; None without.
    """

    def __init__(self, uri: str, asker: Asker, token: Path | None = None) -> None:
        self._uri, self._asker, self._token = uri, asker, token
        self._session = aiohttp.ClientSession(timeout=TIMEOUT)

    async def news(self, url: str, log: str, since: int, wait_seconds: float = NEWS_SECONDS) -> Progress:
        """What the holder at `url` has, after `since` of its log; waits so long for something new.

        Raises:
            FerryError: It does not respond, or does not share this dataset.
        """
        path = progress_path(self._uri, log, since, wait_seconds, self._asker)
        try:
            headers = {"Authorization": f"Bearer {self._token.read_text().strip()}"} if self._token else {}
            async with self._session.get(f"{url}{path}", headers=headers) as response:
                body = await response.read()
        except (aiohttp.ClientError, OSError) as error:
            raise Unavailable.of(f"{url} does not respond", str(error) or type(error).__name__) from error
        if response.status != 200:
            raise _refusal(url, response.status, body)
        return decode_document(body, Progress, FORMAT, f"the progress of {url}")

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()


def _refusal(url: str, status: int, body: bytes) -> FerryError:
    try:
        problems = msgspec.json.decode(body, type=Refusal).problems
    except msgspec.MsgspecError:
        problems = ()
    return Unavailable.of(f"{url} shares nothing", "; ".join(map(str, problems)) or f"HTTP {status}")
