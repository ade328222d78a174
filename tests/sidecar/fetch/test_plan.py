from hypothesis import given, settings
from hypothesis import strategies as st

from podferry.contract.manifest import Entry, freeze
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.plan import plan_fetch
from podferry.sidecar.staging.volume_capacity import Capacity

MIB = 1 << 20
ROOMY = Capacity(volume_bytes=1 << 50)
SIZES = st.dictionaries(st.from_regex(r"[a-c]{1,3}", fullmatch=True), st.integers(0, 300), max_size=12)


def manifest(sizes):
    return freeze("s3://b/d", [Entry(name, size) for name, size in sizes.items()])


def planned(sizes, kept=(), **settings):
    return plan_fetch(manifest(sizes), frozenset(kept), PrefetchSettings(**settings))


@settings(deadline=None)
@given(SIZES, st.integers(1, 100), st.data())
def test_the_ranges_tile_each_file_that_is_missing(sizes, range_bytes, data):
    kept = data.draw(st.sets(st.sampled_from(sorted(sizes)))) if sizes else set()
    plan = planned(sizes, kept, range_bytes=range_bytes)
    ends = dict.fromkeys(range(len(plan.files)), 0)
    counts = dict.fromkeys(ends, 0)
    for one in plan.ranges():
        assert one.start == ends[one.file]
        assert one.length <= range_bytes
        assert one.length > 0 or plan.files[one.file].size == 0
        ends[one.file] += one.length
        counts[one.file] += 1
    assert {plan.files[index].name: end for index, end in ends.items()} == {
        name: size for name, size in sizes.items() if name not in kept
    }
    assert tuple(counts.values()) == plan.range_counts
    assert {entry.name for entry in plan.kept} == kept


@settings(deadline=None)  # a busy machine may stop for longer than any call takes
@given(SIZES)
def test_the_largest_are_first_and_the_order_is_stable(sizes):
    names = [(entry.size, entry.name) for entry in planned(sizes).files]
    assert names == sorted(names, key=lambda pair: (-pair[0], pair[1]))
