import asyncio

import msgspec
import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer

from podferry.cache.holder import active_readers, token_budget
from podferry.cache.holder.readers import Readers
from podferry.cache.holder.refresher import refresh
from podferry.cache.holder.server import HolderServer
from podferry.cache.peers.peers import Peers
from podferry.contract.cache_api import (
    AUDIENCE,
    DATASET_PATH,
    HEALTH_PATH,
    HOLDER_HEADER,
    REFRESH_PATH,
    STATUS_PATH,
    TOKEN_HEADER,
    Asker,
    Filling,
    HeldDataset,
    HolderStatus,
    Progress,
    Refusal,
    dataset_path,
    file_path,
    progress_path,
)
from podferry.contract.errors import AccessDenied, EmptyDataset, Unavailable
from podferry.storage.checksum.checksums import crc64
from podferry.storage.memory.store import Fault
from tests.support.dataset_site import held
from tests.support.holder_site import holder_stage
from tests.support.output_site import until

FILES = {"a/1": b"one", "a/2": b"two", "b": b""}
ODD = "a b/100%/ü#?&+.txt"


@pytest.fixture
async def site(content, tmp_path):
    """A stage that is not filled, and what gets a path."""
    content.objects["d/" + ODD] = b"odd"
    stage = holder_stage(content.uri, tmp_path / "held")
    async with TestServer(HolderServer([stage], "n1").application()) as server, ClientSession() as session:

        async def get(path):
            async with session.get(f"{server.make_url('')}".rstrip("/") + path) as response:
                return response.status, await response.read()

        yield stage, get
    await stage.close()


async def test_a_complete_dataset_and_its_files(site, content):
    stage, get = site
    await stage.fill()
    status, body = await get(dataset_path(str(content.uri), 0))
    assert status == 200
    held = msgspec.json.decode(body, type=HeldDataset)
    assert held == stage.complete.document
    for entry in held.manifest.entries:
        found = await get(file_path(held.manifest.digest, entry.name))
        assert found == (200, content.objects[f"d/{entry.name}"])


async def test_a_dataset_that_is_being_fetched(site, content):
    stage, get = site
    status, body = await get(dataset_path(str(content.uri), 0.01))
    assert (status, msgspec.json.decode(body, type=Filling)) == (202, Filling())
    waiting = asyncio.create_task(get(dataset_path(str(content.uri), 20)))
    await stage.fill()
    assert (await waiting)[0] == 200


async def test_a_dataset_that_cannot_be_fetched(site, content):
    stage, get = site
    content.objects.clear()
    with pytest.raises(EmptyDataset):
        await stage.fill()
    status, body = await get(dataset_path(str(content.uri), 20))
    assert status == 503
    assert "is empty" in str(msgspec.json.decode(body, type=Refusal).problems[0])
    _, text = await get(STATUS_PATH)
    assert msgspec.json.decode(text, type=HolderStatus).problems == stage.failure.problems


async def test_what_the_holder_does_not_have(site, content):
    stage, get = site
    status, body = await get(dataset_path("s3://other/x", 0))
    assert (status, str(content.uri) in body.decode()) == (404, True)
    assert (await get(file_path("0" * 64, "b")))[0] == 404
    await stage.fill()
    digest = stage.complete.document.manifest.digest
    for name in ("missing", "a", "..", "../held.podferry/claim", "%2e%2e/held.podferry/claim"):
        assert (await get(f"/v1/files/{digest}/{name}"))[0] == 404
    (stage.root / "b").unlink()
    assert (await get(file_path(digest, "b")))[0] == 404


async def test_status_and_health(site, content):
    stage, get = site
    await stage.fill()
    await get(file_path(stage.complete.document.manifest.digest, "a/1"))
    status = msgspec.json.decode((await get(STATUS_PATH))[1], type=HolderStatus)
    assert (status.node, status.complete, status.served_bytes) == ("n1", (str(content.uri),), 3)
    assert status.datasets[0].files_done == 4
    assert await get(HEALTH_PATH) == (200, b"ok\n")


async def test_other_holders_see_what_it_has_and_take_it_before_it_is_complete(content, tmp_path):
    peers = Peers(str(content.uri), "me", nobody, none)
    stage = holder_stage(content.uri, tmp_path / "held", peers)
    asker = Asker("other", "0" * 64)
    blocked = asyncio.Event()
    content.faults.append(Fault("read", "a/2", wait=blocked))
    async with (
        TestServer(HolderServer([stage], "n1").application()) as server,
        ClientSession(server.make_url("/")) as session,
    ):

        async def progress(*known):
            async with session.get(progress_path(str(content.uri), *known, asker)) as response:
                return msgspec.json.decode(await response.read(), type=Progress)

        listing = await progress("", 0, 0)
        assert (listing.holder, listing.log, listing.digest) == ("me", "", "")
        assert [peer.view.name for peer in peers.live()] == ["other"]
        filling = asyncio.create_task(stage.fill())
        claimed = await progress("", 0, 25)
        assert {news.part.entry.name for news in claimed.news if news.checksum is None} <= {"a/1", "a/2", "b"}
        path = file_path(claimed.digest, "a/1")
        async with session.get(path) as response:
            assert response.status == 404
        waiting = asyncio.create_task(progress(claimed.log, claimed.end, 25))
        blocked.set()
        await filling
        assert (await waiting).news
        held = await progress("", 0, 0)
        checksums = {news.part.entry.name: news.checksum for news in held.news if news.checksum is not None}
        assert checksums == {name: crc64(data) for name, data in FILES.items()}
        async with session.get(path) as response:
            assert await response.read() == b"one"
    await stage.close()


async def nobody():
    return []


async def none():
    return 0


async def test_other_holders_are_no_readers(content, tmp_path, monkeypatch):
    monkeypatch.setattr(active_readers, "LINGER_SECONDS", 1e9)
    stage = holder_stage(content.uri, tmp_path / "held")
    await stage.fill()
    path = file_path(stage.complete.digest, "a/1")
    application = HolderServer([stage], "n1").application()
    async with TestServer(application) as server, ClientSession(server.make_url("/")) as session:
        for headers, readers in (({HOLDER_HEADER: "1"}, ()), ({}, ("127.0.0.1",))):
            async with session.get(path, headers=headers) as response:
                assert await response.read() == b"one"
            async with session.get(STATUS_PATH) as response:
                assert msgspec.json.decode(await response.read(), type=HolderStatus).readers == readers
    await stage.close()


@pytest.mark.parametrize(("uri", "failed"), [(None, 503), ("s3://other/x", 404)])
async def test_what_is_not_shared(site, content, uri, failed):
    stage, get = site
    path = progress_path(uri or str(content.uri), "", 0, 0, Asker("other", "d"))
    assert (await get(path))[0] == 404
    content.objects.clear()
    with pytest.raises(EmptyDataset):
        await stage.fill()
    assert (await get(path))[0] == failed


async def test_only_bytes_of_files_count_as_served(content, tmp_path):
    stage = holder_stage(content.uri, tmp_path / "held")
    await stage.fill()
    holder = HolderServer([stage], "n1")
    path = file_path(stage.complete.document.manifest.digest, "a/1")
    async with TestServer(holder.application()) as server, ClientSession(server.make_url("/")) as session:
        await session.head(path)
        await session.get(path, headers={"Range": "bytes=9-"})
        assert holder.served_bytes == 0
        await session.get(path, headers={"Range": "bytes=1-"})
        assert holder.served_bytes == 2
    await stage.close()


@pytest.mark.parametrize("wait", ["soon", "nan", "-NaN", ""])
async def test_a_wait_is_a_number(site, content, wait):
    assert (await site[1](f"{DATASET_PATH}?uri={content.uri}&wait={wait}"))[0] == 400


async def test_readers_need_a_token_except_for_the_probe(content, tmp_path):
    async def review(token, _):
        user = {"username": f"system:serviceaccount:{token}:default"}
        return {"authenticated": token != "bad", "audiences": [AUDIENCE], "user": user}

    stage = holder_stage(content.uri, tmp_path / "held")
    await stage.fill()
    application = HolderServer([stage], "n1", Readers(review, ["team"])).application()
    path = file_path(stage.complete.document.manifest.digest, "a/1")
    async with TestServer(application) as server, ClientSession(server.make_url("/")) as session:
        for place in (path, STATUS_PATH, dataset_path(str(content.uri), 0), "/v1/other"):
            for token, status in {"": 401, "bad": 401, "other": 403}.items():
                async with session.get(place, headers={"Authorization": f"Bearer {token}"}) as response:
                    assert response.status == status
                    assert msgspec.json.decode(await response.read(), type=Refusal).problems
        async with session.get(path, headers={"Authorization": "Bearer team"}) as response:
            assert (response.status, await response.read()) == (200, b"one")
        async with session.get(path, headers={TOKEN_HEADER: "team"}) as response:
            assert response.status == 200
        async with session.get(HEALTH_PATH) as response:
            assert response.status == 200
    await stage.close()


async def test_a_namespace_does_not_learn_who_reads_in_another_one(content, tmp_path):
    async def review(token, _):
        extra = {"authentication.kubernetes.io/pod-name": ["secret-model"]}
        account = "podferry:holder" if token == "holder" else f"{token}:default"
        user = {"username": f"system:serviceaccount:{account}", "extra": extra}
        return {"authenticated": True, "audiences": [AUDIENCE], "user": user}

    stage = holder_stage(content.uri, tmp_path / "held")
    await stage.fill()
    readers = Readers(review, ["*"], holders="system:serviceaccount:podferry:holder")
    seen = {}
    async with (
        TestServer(HolderServer([stage], "n1", readers).application()) as server,
        ClientSession(server.make_url("/")) as session,
    ):
        for asker in ("team-a", "team-b", "holder"):
            headers = {"Authorization": f"Bearer {asker}"}
            async with session.get(file_path(stage.complete.digest, "a/1"), headers=headers) as response:
                assert response.status == 200
            async with session.get(STATUS_PATH, headers=headers) as response:
                seen[asker] = msgspec.json.decode(await response.read(), type=HolderStatus).readers
    assert seen["team-a"] == ("team-a/secret-model",)
    assert seen["team-b"] == ("team-b/secret-model",)
    assert {"team-a/secret-model", "team-b/secret-model"} <= set(seen["holder"])
    await stage.close()


async def test_only_holders_are_peers(content, tmp_path):
    async def review(token, _):
        user = {"username": f"system:serviceaccount:team:{token}"}
        return {"authenticated": True, "audiences": [AUDIENCE], "user": user}

    peers = Peers(str(content.uri), "me", nobody, none)
    stage = holder_stage(content.uri, tmp_path / "held", peers)
    readers = Readers(review, ["team"], holders="system:serviceaccount:team:holder")
    asked = progress_path(str(content.uri), "", 0, 0, Asker("other", "d"))
    blocked = asyncio.Event()
    content.faults.append(Fault("read", "a/2", wait=blocked))
    async with (
        TestServer(HolderServer([stage], "n1", readers).application()) as server,
        ClientSession(server.make_url("/")) as session,
    ):

        async def status(path, account):
            headers = {"Authorization": f"Bearer {account}", HOLDER_HEADER: "1"}
            async with session.get(path, headers=headers) as response:
                return response.status

        assert await status(asked, "default") == 403
        assert peers.live() == []
        assert await status(asked, "holder") == 200
        assert len(peers.live()) == 1
        filling = asyncio.create_task(stage.fill())
        await until(lambda: stage.status.bytes)
        blocked.set()
        await filling
        path = file_path(stage.complete.digest, "a/1")
        await status(path, "holder")
        assert await active(session) == ()
        await status(path, "default")
        assert await active(session) == ("team/",)
    await stage.close()


async def test_only_holders_ask_for_a_refresh(content, tmp_path):
    async def review(token, _):
        user = {"username": f"system:serviceaccount:team:{token}"}
        return {"authenticated": True, "audiences": [AUDIENCE], "user": user}

    stage = holder_stage(content.uri, tmp_path / "held")
    await stage.fill()
    readers = Readers(review, ["team"], holders="system:serviceaccount:team:holder")
    application = HolderServer([stage], "n1", readers).application()
    async with TestServer(application) as server, ClientSession(server.make_url("/")) as session:

        async def ask(account, uri):
            headers = {"Authorization": f"Bearer {account}"}
            async with session.post(f"{REFRESH_PATH}?uri={uri}", headers=headers) as response:
                status = response.status
            async with session.get(STATUS_PATH, headers=headers) as response:
                return status, msgspec.json.decode(await response.read(), type=HolderStatus).refreshing

        assert await ask("default", content.uri) == (403, ())
        assert await ask("holder", "s3://other/x") == (404, ())
        assert await ask("holder", content.uri) == (202, (str(content.uri),))
        content.objects["d/b"] = b"new"
        await refresh(stage)
        assert (await ask("default", content.uri))[1] == ()
    assert held(stage.root)["b"] == b"new"
    await stage.close()


async def active(session):
    async with session.get(STATUS_PATH, headers={"Authorization": "Bearer default"}) as response:
        return msgspec.json.decode(await response.read(), type=HolderStatus).readers


async def test_what_is_not_complete_is_for_holders_alone(content, tmp_path, monkeypatch):
    monkeypatch.setattr("podferry.cache.peers.shared_fill.step_bytes", lambda _: 1)
    stage = holder_stage(content.uri, tmp_path / "held", Peers(str(content.uri), "me", nobody, none))
    blocked = asyncio.Event()
    content.faults.append(Fault("read", "a/2", wait=blocked))
    application = HolderServer([stage], "n1").application()
    async with TestServer(application) as server, ClientSession(server.make_url("/")) as session:
        filling = asyncio.create_task(stage.fill())
        await until(lambda: stage.shared._log is not None and stage.shared._log.held("a/1"))
        path = file_path(stage.shared._log.manifest.digest, "a/1")
        for headers, expected in (({}, 404), ({HOLDER_HEADER: "1"}, 200)):
            async with session.get(path, headers=headers) as response:
                assert response.status == expected
        blocked.set()
        await filling
    await stage.close()


async def test_who_guesses_tokens_is_asked_to_wait(content, tmp_path, monkeypatch):
    monkeypatch.setattr(token_budget, "MAX_UNKNOWN", 1)

    async def review(token, _):
        return {"authenticated": False}

    stage = holder_stage(content.uri, tmp_path / "held")
    application = HolderServer([stage], "n1", Readers(review, ["team"])).application()
    async with TestServer(application) as server, ClientSession(server.make_url("/")) as session:
        for token, expected, wait in (("bad", 401, None), ("worse", 429, "30")):
            async with session.get(STATUS_PATH, headers={"Authorization": f"Bearer {token}"}) as response:
                assert (response.status, response.headers.get("Retry-After")) == (expected, wait)
    await stage.close()


@pytest.mark.parametrize(("error", "wait"), [(Unavailable.of("away"), "1"), (AccessDenied.of("no"), None)])
async def test_readers_wait_for_an_api_server_that_does_not_respond(content, tmp_path, error, wait):
    async def review(token, _):
        raise error

    stage = holder_stage(content.uri, tmp_path / "held")
    application = HolderServer([stage], "n1", Readers(review, ["team"])).application()
    async with (
        TestServer(application) as server,
        ClientSession(server.make_url("/")) as session,
        session.get(STATUS_PATH, headers={"Authorization": "Bearer good"}) as response,
    ):
        assert (response.status, response.headers.get("Retry-After")) == (503, wait)
    await stage.close()


async def test_readers_are_those_that_read(site, content, monkeypatch):
    monkeypatch.setattr(active_readers, "LINGER_SECONDS", 1e9)
    stage, get = site
    await stage.fill()
    assert msgspec.json.decode((await get(STATUS_PATH))[1], type=HolderStatus).readers == ()
    await get(dataset_path(str(content.uri), 0))
    assert msgspec.json.decode((await get(STATUS_PATH))[1], type=HolderStatus).readers == ("127.0.0.1",)


async def test_a_reader_that_leaves_in_the_middle_is_no_error(content, tmp_path, caplog):
    content.objects["d/large"] = bytes(64 << 20)
    stage = holder_stage(content.uri, tmp_path / "held")
    await stage.fill()
    holder = HolderServer([stage], "n1")
    async with TestServer(holder.application()) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        path = file_path(stage.complete.digest, "large")
        writer.write(f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        assert holder._active._open.total() == 1
        writer.transport.abort()
        await until(lambda: not holder._active._open.total())
    await stage.close()
    assert caplog.records == []
    assert holder.served_bytes == 0
