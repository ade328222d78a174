import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podferry.contract.manifest import Entry, freeze
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.partial_file import (
    JOURNAL_SUFFIX,
    PartialFile,
    WrittenRange,
    count_partial_bytes,
    written_ranges,
)
from podferry.sidecar.fetch.plan import plan_fetch
from podferry.sidecar.staging.staging_dir import StagingDir

reusing = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
RANGE = 100
ENTRY = Entry("d/large", 1050, '"tag"')
RANGES = [WrittenRange(start, min(RANGE, ENTRY.size - start)) for start in range(0, ENTRY.size, RANGE)]


@pytest.fixture
def stage(tmp_path):
    (tmp_path / "stage").mkdir()
    made = StagingDir(tmp_path / "stage", tmp_path / "ownership")
    made.claim(freeze("s3://b/x", [ENTRY]))
    yield made
    made.close()


def write(stage, partial, one):
    stage.write(partial.path, memoryview(os.urandom(one.length)), one.start)
    partial.record(one)


@reusing
@given(order=st.permutations(RANGES), first=st.integers(0, len(RANGES)))
def test_the_next_start_knows_the_written_ranges_and_no_others(stage, order, first):
    stage.remove_partials()
    stage.partial_dir.mkdir()
    partial = PartialFile(stage, ENTRY, RANGE)
    for one in order[:first]:
        write(stage, partial, one)
    plan = plan_fetch(freeze("s3://b/x", [ENTRY]), set(), PrefetchSettings(range_bytes=RANGE))
    assert count_partial_bytes(plan, stage).partial_bytes == sum(one.length for one in order[:first])
    again = PartialFile(stage, ENTRY, RANGE)
    assert {one.start for one in again.written.values()} == {one.start for one in order[:first]}
    assert again.complete == (first == len(RANGES))
    before = partial.path.read_bytes()
    for one in order[first:]:
        write(stage, again, one)
    assert again.complete
    assert all(
        partial.path.read_bytes()[one.start :][: one.length] == before[one.start :][: one.length]
        for one in order[:first]
    )


@reusing
@given(cut=st.integers(1, 12))
def test_a_torn_line_is_ignored(stage, cut):
    stage.remove_partials()
    stage.partial_dir.mkdir()
    partial = PartialFile(stage, ENTRY, RANGE)
    for one in RANGES[:3]:
        write(stage, partial, one)
    journal = partial.path.with_name(partial.path.name + JOURNAL_SUFFIX)
    journal.write_bytes(journal.read_bytes()[:-cut])
    assert list(written_ranges(stage, ENTRY, RANGE)) == RANGES[:2]


def test_ranges_of_another_length_are_fetched_again(stage):
    partial = PartialFile(stage, ENTRY, RANGE)
    write(stage, partial, RANGES[0])
    assert not PartialFile(stage, ENTRY, RANGE // 2).written
    assert list(written_ranges(stage, ENTRY, RANGE // 2)) == []


def test_another_version_of_a_file_starts_again(stage):
    write(stage, PartialFile(stage, ENTRY, RANGE), RANGES[0])
    assert not PartialFile(stage, Entry(ENTRY.name, ENTRY.size, '"other"'), RANGE).written


def test_a_range_that_is_not_in_the_file_was_not_written(stage):
    partial = PartialFile(stage, ENTRY, RANGE)
    write(stage, partial, RANGES[3])
    partial.path.write_bytes(b"")
    assert not PartialFile(stage, ENTRY, RANGE).written


def test_once_published_no_partial_file_is_left(stage):
    partial = PartialFile(stage, ENTRY, RANGE)
    for one in RANGES:
        write(stage, partial, one)
    content = partial.path.read_bytes()
    partial.publish()
    assert (stage.root / ENTRY.name).read_bytes() == content
    assert not list(stage.partial_dir.iterdir())
