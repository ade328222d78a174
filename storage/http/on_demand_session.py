"""A session of aiohttp that is opened when it is needed. Importing this does not load aiohttp."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import aiohttp


class OnDemandSession:
    """Opened for the first request, on its event loop, and again after it was closed."""

    def __init__(self, open_session: Callable[[], aiohttp.ClientSession]) -> None:
        self._open = open_session
        self._session: aiohttp.ClientSession | None = None

    def opened(self) -> aiohttp.ClientSession:
        """The session."""
        if self._session is None:
            self._session = self._open()
        return self._session

    async def close(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None  # at once: a request meanwhile opens its own
        if session is not None:
            await session.close()
