"""Sessions are opened when they are needed, once until they are closed."""

import aiohttp

from podferry.storage.http.on_demand_session import OnDemandSession


async def test_it_opens_for_the_first_request_and_again_after_it_was_closed():
    session = OnDemandSession(aiohttp.ClientSession)
    await session.close()
    first = session.opened()
    assert session.opened() is first
    await session.close()
    assert first.closed
    second = session.opened()
    assert second is not first
    assert not second.closed
    await session.close()
