from hypothesis import given, settings
from hypothesis import strategies as st

from podferry.contract.file_part import FilePart
from podferry.contract.manifest import Entry, freeze
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.plan import plan_fetch, plan_parts
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
    for index, file in enumerate(plan.files):
        for start, length in plan.ranges_of(index):
            assert start == ends[index]
            assert length <= range_bytes
            assert length > 0 or file.size == 0
            ends[index] += length
            counts[index] += 1
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


@settings(deadline=None)
@given(SIZES, st.integers(1, 9), st.data())
def test_the_ranges_of_parts_are_those_of_the_parts(sizes, range_bytes, data):
    every = [
        FilePart(entry, start, min(4 * range_bytes, entry.size - start))
        for entry in manifest(sizes).entries
        for start in range(0, max(entry.size, 1), 4 * range_bytes)
    ]
    parts = data.draw(st.lists(st.sampled_from(every), unique_by=lambda part: part.key)) if every else []
    plan = plan_parts(parts, PrefetchSettings(range_bytes=range_bytes))
    ranges = [(file, *span) for index, file in enumerate(plan.files) for span in plan.ranges_of(index)]
    wanted = {(part.entry.name, at) for part in parts for at in range(part.start, part.start + part.length)}
    assert {
        (file.name, at) for file, start, length in ranges for at in range(start, start + length)
    } == wanted
    assert sum(length for _, _, length in ranges) == len(wanted)
    assert all(start % range_bytes == 0 and length <= range_bytes for _, start, length in ranges)
    assert sum(plan.range_counts) == len(ranges)
    whole = {part.entry.name for part in parts if part.is_whole}
    assert {file.name for index, file in enumerate(plan.files) if index not in plan.spans} == whole
