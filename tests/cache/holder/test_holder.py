import asyncio
import socket

import pytest

from podferry.cache.holder.holder import run_holder
from podferry.contract.cache_api import Holder
from podferry.contract.errors import EmptyDataset
from podferry.storage.holder.client import HolderClient, HolderUnavailable
from tests.support.holder_site import holder_stage


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
