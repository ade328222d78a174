import pytest

from podferry.cache.manifests.cache_spec import CacheSpec, parse_cache_name
from podferry.contract.errors import InvalidSpec
from podferry.contract.memory_sum import memory_sum
from podferry.contract.spec import Medium, Unpack


def test_a_holder_keeps_archives_as_they_are():
    spec = CacheSpec("a", "team", "s3://b/c", 1 << 20, "image")
    assert (spec.dataset.unpack, spec.dataset.size) == (Unpack.NEVER, 1 << 20)
    assert spec.object_name == "podferry-cache-a"


def test_on_disk_only_metadata_costs_memory():
    memory = memory_sum(CacheSpec("a", "team", "s3://b/c", 1 << 40, "image", medium=Medium.DISK).ferry)
    assert memory.data_volume == 0
    assert memory.disk == 1 << 40


def test_a_name_leaves_room_for_those_of_its_objects():
    assert parse_cache_name("d" * 32) == "d" * 32
    for text in ("d" * 33, "Digits", "-d", ""):
        with pytest.raises(InvalidSpec, match="32 at most"):
            parse_cache_name(text)
