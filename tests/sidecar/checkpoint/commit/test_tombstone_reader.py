from __future__ import annotations

import pytest

from podferry.contract.destination.tombstones import Tombstone, tombstone_name
from podferry.contract.errors import Corrupt, NotFound
from podferry.contract.versioned_json import encode_document
from podferry.sidecar.checkpoint.commit.tombstone_reader import names_being_removed, read_tombstones
from podferry.storage.memory.store import Fault


async def test_only_settled_removals_are_finished(lineage):
    record = Tombstone(1, "dead", {"x/planned": 1}, {"x/settled": 1, "d/w": 3, "x/gone": 1})
    lineage.objects[f"base/run/{tombstone_name('dead')}"] = encode_document(record)
    lineage.objects.update({"base/run/x/planned": b"1", "base/run/x/settled": b"1"})
    assert await lineage.collector().unfinished() == {"x/settled": 1}
    assert await lineage.collector().finish() == {"x/settled": 1}
    assert lineage.data == {"a/w", "a/frozen", "b/w", "c/w", "d/w", "x/planned"}
    assert await names_being_removed(lineage.reader.store) == {"x/planned", "x/settled", "x/gone", "d/w"}


async def test_a_tombstone_deleted_while_it_is_read_is_ignored(lineage):
    lineage.objects[f"base/run/{tombstone_name('one')}"] = encode_document(Tombstone(1, "one", {}, {}))
    lineage.faults.append(Fault("read", error=NotFound.of("no")))
    assert await read_tombstones(lineage.reader.store) == []
    lineage.objects[f"base/run/{tombstone_name('one')}"] = b"{"
    with pytest.raises(Corrupt):
        await names_being_removed(lineage.reader.store)
