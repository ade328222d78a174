import asyncio
import os

import pytest
import xxhash

from podferry.contract.destination.commit import CommittedFile
from podferry.contract.errors import Unavailable
from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.commit.content_verifier import ContentVerifier
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.storage.memory.store import Content, Fault, MemoryStore
from tests.support.patience import PATIENCE

RANGE = 1000
SMALL = PrefetchSettings(in_flight=3, range_bytes=RANGE, buffer_bytes=4 * RANGE, attempts=2)
FILES = {"empty": b"", "one": b"1", "many": os.urandom(9 * RANGE + 13), "more": os.urandom(20 * RANGE)}


pytestmark = pytest.mark.usefixtures("no_waiting")


@pytest.fixture
def store():
    made = MemoryStore(parse_uri("memory://examine/base"), Content())
    made.content.objects = {f"base/run/e-1/{name}": data for name, data in FILES.items()}
    return made


class Counting(MemoryStore):
    """Counts the bytes in flight; ranges arrive in another order than requested."""

    now = most = 0

    async def read(self, name, start=0, length=None, tag="", size=None):
        assert tag
        self.now += length
        self.most = max(self.most, self.now)
        try:
            for _ in range(1 + start % 7):
                await asyncio.sleep(0)
            return await super().read(name, start, length, tag, size)
        finally:
            self.now -= length


def committed(name):
    return CommittedFile(name, f"e-1/{name}", len(FILES[name]), xxhash.xxh3_128_hexdigest(FILES[name]))


async def damages(store, verifier):
    found = await asyncio.gather(
        *(verifier.find_damage(LineageStore(store, "run"), committed(name)) for name in FILES)
    )
    return {name: damage.what for name, damage in zip(FILES, found, strict=True) if damage}


async def test_intact_files_are_not_damaged_and_share_one_limit(store):
    counts, counting = [], Counting(store.uri, store.content)
    assert await damages(counting, ContentVerifier(counts.append, SMALL)) == {}
    assert 3 * RANGE < counting.most <= SMALL.buffer_bytes
    assert sum(counts) == sum(map(len, FILES.values()))


async def test_each_damage_is_reported_and_the_others_are_checked(store):
    objects = store.content.objects
    objects["base/run/e-1/one"] = b"2"
    del objects["base/run/e-1/many"]
    objects["base/run/e-1/more"] = FILES["more"][:-1]
    objects["base/run/e-1/empty"] = b"x"
    found = await damages(store, ContentVerifier(settings=SMALL))
    assert found == {
        "empty": "empty is damaged",
        "one": "one is damaged",
        "many": "there is no object memory://examine/base/run/e-1/many",
        "more": "more is damaged",
    }


async def test_a_failure_releases_the_ranges_behind_it(store):
    """Otherwise later files would have fewer bytes in flight, and finally none."""

    class Failing(Counting):
        async def read(self, name, start=0, length=None, tag="", size=None):
            if name.endswith("more") and start == 0:
                for _ in range(20):
                    await asyncio.sleep(0)
                raise Unavailable.of("no route")
            return await super().read(name, start, length, tag, size)

    failing = Failing(store.uri, store.content)
    verifier, run = ContentVerifier(settings=SMALL), LineageStore(failing, "run")
    for _ in range(3):
        with pytest.raises(Unavailable):
            await verifier.find_damage(run, committed("more"))
    failing.most = 0
    async with asyncio.timeout(PATIENCE):
        assert await verifier.find_damage(run, committed("many")) is None
    assert failing.most == 4 * RANGE


async def test_a_file_that_changes_during_the_check_is_reported(store):
    class Changing(MemoryStore):
        async def read(self, name, start=0, length=None, tag="", size=None):
            self.content.objects[f"base/{name}"] = b"x" * len(self.content.objects[f"base/{name}"])
            return await super().read(name, start, length, tag, size)

    changing = LineageStore(Changing(store.uri, store.content), "run")
    damage = await ContentVerifier(settings=SMALL).find_damage(changing, committed("many"))
    assert "has changed since it was listed" in damage.what
    async with asyncio.timeout(PATIENCE):
        assert (
            await ContentVerifier(settings=SMALL).find_damage(LineageStore(store, "run"), committed("one"))
            is None
        )


async def test_a_range_is_retried(store):
    store.faults.append(Fault("read", "*many", skip=3, error=Unavailable.of("reset")))
    assert await damages(store, ContentVerifier(settings=SMALL)) == {}
