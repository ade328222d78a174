import asyncio
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from podferry.contract.errors import Unavailable
from podferry.webhook.cluster.certificates import Certificates, renew_if_needed
from podferry.webhook.cluster.rotation import Rotation, load
from tests.support.memory_cluster import MemoryCluster
from tests.support.patience import PATIENCE

Pod = dict[str, Any]
NAMES = ["localhost"]
SECRET, CONFIGURATION = "podferry-webhook", "podferry"


async def test_two_replicas_share_one_secret(cluster: MemoryCluster) -> None:
    replicas = [Rotation(cluster, SECRET, CONFIGURATION, NAMES, settle=0.0) for _ in range(2)]
    await asyncio.gather(*(replica.refresh() for replica in replicas))
    version = cluster.secrets[SECRET]["metadata"]["resourceVersion"]
    for replica in replicas:
        await replica.refresh()
    assert cluster.secrets[SECRET]["metadata"]["resourceVersion"] == version == "2"


async def test_replicas_sign_with_the_same_key(cluster: MemoryCluster) -> None:
    replicas = [Rotation(cluster, SECRET, CONFIGURATION, NAMES, settle=0.0) for _ in range(2)]
    await asyncio.gather(*(replica.refresh() for replica in replicas))
    keys = replicas[0].signer().keys
    assert len(keys) == 1
    assert replicas[1].signer().keys == keys
    # The Secret was emptied: pods are being signed with this key.
    cluster.secrets[SECRET]["data"] = {}
    await replicas[1].refresh()
    third = Rotation(cluster, SECRET, CONFIGURATION, NAMES, settle=0.0)
    await third.refresh()
    assert third.signer().keys == keys


async def test_an_emptied_secret_is_filled_with_what_is_served(cluster: MemoryCluster) -> None:
    """Another certificate authority would end the trust in the other replica."""
    replicas = [Rotation(cluster, SECRET, CONFIGURATION, NAMES, settle=0.0) for _ in range(2)]
    await asyncio.gather(*(replica.refresh() for replica in replicas))
    before, bundles = dict(cluster.secrets[SECRET]["data"]), dict(cluster.bundles)
    cluster.secrets[SECRET]["data"] = {}
    await replicas[0].refresh()
    assert cluster.secrets[SECRET]["data"] == before
    assert cluster.bundles == bundles


async def test_a_conflict_is_read_again(cluster: MemoryCluster) -> None:
    """Another replica writes between this one's read and write."""
    other = Rotation(cluster, SECRET, CONFIGURATION, NAMES, settle=0.0)
    secret, raced = cluster.secret, False

    async def read_then_race(name: str) -> Pod:
        nonlocal raced
        found = await secret(name)
        if not raced:
            raced = True
            await other.refresh()
        return found

    cluster.secret = read_then_race  # type: ignore[method-assign]
    await Rotation(cluster, SECRET, CONFIGURATION, NAMES, settle=0.0).refresh()
    assert cluster.secrets[SECRET]["metadata"]["resourceVersion"] == "2"


async def test_a_removed_bundle_is_restored(cluster: MemoryCluster, rotation: Rotation) -> None:
    await rotation.refresh()
    before = dict(cluster.bundles)
    cluster.bundles = dict.fromkeys(before, "")
    await rotation.refresh()
    assert cluster.bundles == before


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            if is_so():
                return
            await asyncio.sleep(0.001)


async def test_a_round_that_fails_is_followed_by_others(cluster: MemoryCluster, rotation: Rotation) -> None:
    await rotation.refresh()
    cluster.failure = Unavailable.of("no answer")
    cluster.bundles = dict.fromkeys(cluster.bundles, "")
    keeping = asyncio.create_task(rotation.run(seconds=0.001))
    before = cluster.calls
    await until(lambda: cluster.calls >= before + 3)
    cluster.failure = None
    await until(lambda: all(cluster.bundles.values()))
    keeping.cancel()


async def test_a_secret_that_keeps_changing(cluster: MemoryCluster, rotation: Rotation) -> None:
    async def conflict(secret: Any) -> bool:
        return False

    cluster.replace_secret = conflict  # type: ignore[method-assign]
    with pytest.raises(Unavailable, match="keeps changing"):
        await rotation.refresh()


def test_loading_leaves_nothing_behind(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    material: Certificates = renew_if_needed(None, NAMES, datetime.now(UTC))
    load(ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), material)
    assert list(tmp_path.iterdir()) == []
