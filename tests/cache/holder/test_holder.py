import asyncio
import socket

import pytest
from aiohttp import ClientSession

from podferry.cache.holder.holder import run_holder
from podferry.contract.cache_api import Holder, file_path
from podferry.contract.errors import EmptyDataset
from podferry.storage.holder.client import HolderClient, HolderUnavailable
from tests.support.holder_site import holder_stage, running_holder


async def test_a_dataset_that_fails_does_not_stop_the_others(content, tmp_path):
    wrong, right = "memory://nothing-is-there/x", str(content.uri)
    stages = [holder_stage(wrong, tmp_path / "wrong"), holder_stage(right, tmp_path / "right")]
    listener = socket.create_server(("127.0.0.1", 0))
    running = asyncio.create_task(run_holder(stages, listener, "here"))
    client = HolderClient(Holder(f"http://127.0.0.1:{listener.getsockname()[1]}"))
    assert (await client.dataset(right)).manifest.files == 3
    with pytest.raises(HolderUnavailable, match="nothing-is-there"):
        await client.dataset(wrong)
    await client.close()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_it_ends_if_nothing_can_be_fetched(tmp_path):
    stage = holder_stage("memory://nothing-is-there/x", tmp_path / "wrong")
    with pytest.raises(EmptyDataset):
        await run_holder([stage], socket.create_server(("127.0.0.1", 0)), "here")


@pytest.mark.parametrize("sent", [b"\x01\xff\x00 nothing\r\n\r\n", b"GET / HTTP/1.1\r\nX Y: z\r\n\r\n"])
async def test_what_is_no_request_gets_no_line_in_the_log(content, tmp_path, caplog, sent):
    async with running_holder(content.uri, tmp_path / "held") as (stage, holder):
        await stage.wait(20)
        host, port = holder.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(sent)
        assert (await reader.read()).split()[1] == b"400"
        writer.close()
    assert not caplog.records


async def test_a_link_in_the_place_of_a_file_is_a_file_that_is_not_there(content, tmp_path, caplog):
    async with running_holder(content.uri, tmp_path / "held") as (stage, holder):
        await stage.wait(20)
        (tmp_path / "held/b").unlink()
        (tmp_path / "held/b").symlink_to("/etc/passwd")
        async with ClientSession() as session:
            url = holder.url + file_path(stage.complete.digest, "b")
            async with session.get(url) as response:
                assert response.status == 404
    assert not caplog.records
