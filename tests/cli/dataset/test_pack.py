import json

import pytest

from podferry.contract.dataset_reference import parse_reference
from podferry.contract.pack import INDEX
from podferry.storage.memory.store import CONTENTS, Content


@pytest.fixture
def packed():
    """The destination of the pack."""
    CONTENTS["packed"] = Content()
    yield "memory://packed/v1"
    del CONTENTS["packed"]


def test_pack_prints_the_reference_and_the_unpacked_size(podferry, digits, packed):
    said = podferry("dataset", "pack", digits, packed)
    assert said.code == 0
    assert said.out.count("\n") == 1
    reference = parse_reference(said.out.strip())
    assert (str(reference.uri), reference.files) == (packed, 2)
    assert said.err.splitlines() == [
        "packed: 4 files, 73.5 KiB, in 1 shard",
        "unpacked in memory it needs podferry.io/dataset-size: 17Mi",
    ]
    assert podferry("dataset", "verify", packed) == (0, "", "complete: 4 files in 1 shard\n")
    again = podferry("dataset", "pack", digits, packed)
    assert (again.out, again.code) == (said.out, 0)
    assert "1 shard, 1 of them from an earlier run" in again.err


def test_pack_and_verify_as_json(podferry, digits, packed):
    found = json.loads(podferry("dataset", "pack", digits, packed, "--shard-size", "1Mi", "-o", "json").out)
    assert parse_reference(found.pop("reference")).files == 2
    assert found == {"files": 4, "bytes": 75312, "shards": 1, "shards_kept": 0, "dataset_size": "17Mi"}
    verified = json.loads(podferry("dataset", "verify", packed, "-o", "json").out)
    assert verified == {"files": 4, "shards": 1, "problems": []}


def test_verify_names_damaged_files(podferry, digits, packed):
    podferry("dataset", "pack", digits, packed)
    key = "v1/shard-00000.tar"
    data = bytearray(CONTENTS["packed"].objects[key])
    data[600] ^= 1
    CONTENTS["packed"].objects[key] = bytes(data)
    said = podferry("dataset", "verify", packed)
    assert said.code == 1
    assert "shard-00000.tar does not match the pack's index (1 of 4 files differ: labels.csv)" in said.err
    del CONTENTS["packed"].objects[f"v1/{INDEX}"]
    said = podferry("dataset", "verify", packed)
    assert (said.code, "is not a pack, or is unfinished" in said.err) == (1, True)


@pytest.mark.parametrize("size", ["1", "6Ti", "much"])
def test_a_shard_of_no_sensible_size_is_refused(podferry, digits, packed, size):
    assert podferry("dataset", "pack", digits, packed, "--shard-size", size).code == 2
    assert CONTENTS["packed"].objects == {}
