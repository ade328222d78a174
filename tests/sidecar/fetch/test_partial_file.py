import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podferry.contract.manifest import Entry, freeze
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.partial_file import JOURNAL, PartialFile, WrittenRange, continued, written
from podferry.sidecar.fetch.plan import plan_fetch
from podferry.sidecar.staging.staging_dir import StagingDir

reusing = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
RANGE = 100
ENTRY = Entry("d/large", 1050, '"tag"')
RANGES = [WrittenRange(start, min(RANGE, ENTRY.size - start)) for start in range(0, ENTRY.size, RANGE)]


@pytest.fixture
def stage(tmp_path):
    (tmp_path / "stage").mkdir()
    made = StagingDir(tmp_path / "stage", tmp_path / "claims")
    made.claim(freeze("s3://b/x", [ENTRY]))
    yield made
    made.close()


def write(stage, growing, came):
    stage.write(growing.path, memoryview(os.urandom(came.length)), came.start)
    growing.note(came)


@reusing
@given(order=st.permutations(RANGES), first=st.integers(0, len(RANGES)))
def test_another_start_knows_what_is_written_and_no_more(stage, order, first):
    stage.finish()
    stage.aside.mkdir()
    growing = PartialFile(stage, ENTRY, RANGE)
    for came in order[:first]:
        write(stage, growing, came)
    plan = plan_fetch(freeze("s3://b/x", [ENTRY]), set(), PrefetchSettings(range_bytes=RANGE))
    assert continued(plan, stage).partial == sum(came.length for came in order[:first])
    again = PartialFile(stage, ENTRY, RANGE)
    assert {came.start for came in again.came.values()} == {came.start for came in order[:first]}
    assert again.whole == (first == len(RANGES))
    before = growing.path.read_bytes()
    for came in order[first:]:
        write(stage, again, came)
    assert again.whole
    assert all(
        growing.path.read_bytes()[came.start :][: came.length] == before[came.start :][: came.length]
        for came in order[:first]
    )


@reusing
@given(cut=st.integers(1, 12))
def test_a_line_that_was_cut_off_tells_nothing(stage, cut):
    stage.finish()
    stage.aside.mkdir()
    growing = PartialFile(stage, ENTRY, RANGE)
    for came in RANGES[:3]:
        write(stage, growing, came)
    journal = growing.path.with_name(growing.path.name + JOURNAL)
    journal.write_bytes(journal.read_bytes()[:-cut])
    assert list(written(stage, ENTRY, RANGE)) == RANGES[:2]


def test_ranges_of_another_length_are_fetched_anew(stage):
    growing = PartialFile(stage, ENTRY, RANGE)
    write(stage, growing, RANGES[0])
    assert not PartialFile(stage, ENTRY, RANGE // 2).came
    assert list(written(stage, ENTRY, RANGE // 2)) == []


def test_another_version_of_a_file_begins_anew(stage):
    write(stage, PartialFile(stage, ENTRY, RANGE), RANGES[0])
    assert not PartialFile(stage, Entry(ENTRY.name, ENTRY.size, '"other"'), RANGE).came


def test_a_range_that_is_not_in_the_file_was_not_written(stage):
    growing = PartialFile(stage, ENTRY, RANGE)
    write(stage, growing, RANGES[3])
    growing.path.write_bytes(b"")
    assert not PartialFile(stage, ENTRY, RANGE).came


def test_once_it_has_its_name_nothing_is_left_aside(stage):
    growing = PartialFile(stage, ENTRY, RANGE)
    for came in RANGES:
        write(stage, growing, came)
    content = growing.path.read_bytes()
    growing.admit()
    assert (stage.root / ENTRY.name).read_bytes() == content
    assert not list(stage.aside.iterdir())
