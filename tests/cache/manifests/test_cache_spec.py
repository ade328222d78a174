from podferry.cache.manifests.cache_spec import CacheSpec
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
