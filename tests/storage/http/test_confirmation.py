"""Whether files are still the listed ones: by plain responses, and by the store where there are none."""

from __future__ import annotations

import pytest
from aiohttp import web

from podferry.contract.errors import Changed, NotFound, Unavailable
from podferry.contract.manifest import Entry
from podferry.contract.uri import parse_uri
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.http.confirmation import confirming
from podferry.storage.http.get_requests import web_get_builder
from podferry.storage.network.settings import DIRECT

TAGGED = {"ETag": '"t"'}
NAMES = [f"d/{number}.html" for number in range(100)]
LISTED = [Entry(name, 3, '"t"') for name in NAMES]
DATE = "Tue, 14 Nov 2023 22:13:20 GMT"


@pytest.fixture
async def confirmed(answering, quick):
    """Confirms entries with a server that sends these fields of these names; the names that `stat` got."""

    async def confirm(entries, fields, stat_finds=None, *, plain: bool = True) -> list[str]:
        asked: list[str] = []

        async def respond(request: web.Request) -> web.Response:
            found = fields.get(request.match_info["path"])
            return web.Response(status=404) if found is None else web.Response(body=b"abc", headers=found)

        async def stat(name: str) -> Entry:
            asked.append(name)
            if stat_finds is None:
                raise NotFound.of(f"{name} does not exist")
            return Entry(name, *stat_finds)

        endpoint = await answering(respond)
        builder = web_get_builder(endpoint, "", DIRECT, None) if plain else None
        location = StoreLocation(parse_uri(endpoint), endpoint)
        async with confirming(location, builder, quick, stat) as confirm:
            await confirm(entries[:1])
            await confirm(entries)
        return asked

    return confirm


@pytest.mark.parametrize(
    ("listed", "served"),
    [
        ('"t"', {"ETag": '"t"'}),
        ('"t"', {"ETag": "t"}),
        ('W/"t"', {"ETag": 'W/"t"'}),
        (DATE, {"Last-Modified": DATE}),
        ("", {"ETag": '"t"'}),
        ('"t"', {"ETag": '"t"', "Content-Type": "text/html"}),
    ],
)
async def test_plain_responses_are_enough(confirmed, listed: str, served: dict[str, str]) -> None:
    entries = [Entry(name, 3, listed) for name in NAMES]
    assert await confirmed(entries, dict.fromkeys(NAMES, served)) == []


@pytest.mark.parametrize("served", [{"ETag": '"u"'}, {}, {"Last-Modified": DATE}])
async def test_another_tag_is_an_error_unless_the_store_knows_better(confirmed, served) -> None:
    fields = dict.fromkeys(NAMES, TAGGED) | {NAMES[70]: served}
    assert await confirmed(LISTED, fields, (3, '"t"')) == [NAMES[70]]
    with pytest.raises(Changed, match=rf'{NAMES[70]}.*"u", was "t"'):
        await confirmed(LISTED, fields, (3, '"u"'))


async def test_another_size_is_an_error(confirmed) -> None:
    entries, fields = [Entry("a", 4)], {"a": {"ETag": '"t"'}}
    with pytest.raises(Changed, match="3 bytes, 4 were listed"):
        await confirmed(entries, fields, (3, '"t"'))


async def test_a_removed_file_is_named(confirmed) -> None:
    fields = dict.fromkeys(NAMES, TAGGED) | {NAMES[70]: None}
    with pytest.raises(NotFound, match=NAMES[70]):
        await confirmed(LISTED, fields)


async def test_without_requests_of_its_own_the_store_is_asked(confirmed) -> None:
    asked = await confirmed(LISTED, {}, (3, '"t"'), plain=False)
    assert asked == [NAMES[0], *NAMES]


async def test_a_server_that_hangs_is_unavailable(answering, quick) -> None:
    async def hangs(request: web.Request) -> web.Response:
        raise ConnectionResetError

    async def stat(name: str) -> Entry:
        raise Unavailable.of("no response")

    endpoint = await answering(hangs)
    location = StoreLocation(parse_uri(endpoint), endpoint)
    async with confirming(location, web_get_builder(endpoint, "", DIRECT, None), quick, stat) as confirm:
        with pytest.raises(Unavailable):
            await confirm(LISTED)
