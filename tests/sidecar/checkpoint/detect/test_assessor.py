"""The assessor alone: what it remembers from one scan to the next."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from podferry.contract.destination.commit import Doubt, DoubtKind
from podferry.sidecar.checkpoint.detect.assessor import Assessor, TrainerContext
from podferry.sidecar.checkpoint.detect.detector import scan_checkpoints
from podferry.sidecar.checkpoint.detect.evidence import Seen
from podferry.sidecar.checkpoint.detect.open_files import OpenFiles


@pytest.fixture
def assessor(tmp_path):
    return Assessor(tmp_path, TrainerContext(one_life=True))


def candidate(root, name, data):
    path = root / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return scan_checkpoints(root)[1][name.partition("/")[0].removesuffix(".raw")]


async def test_a_torn_file_is_incomplete_even_if_it_is_marked(tmp_path, assessor):
    torn = candidate(tmp_path, "s/a.pkl", pickle.dumps([1])[:-1])
    problem = await assessor.incomplete(torn, marked=True)
    assert problem.what == "s is not complete"
    assert "no end yet" in problem.measured


async def test_a_save_proves_only_those_that_were_accepted(tmp_path, assessor):
    assessor.begin([], {})
    first = await assessor.judge(candidate(tmp_path, "s-1/a.raw", b"1"), Seen(frozenset({"s-1/a.raw"})))
    assert not first.is_sure
    second = await assessor.judge(candidate(tmp_path, "s-2/a.raw", b"2"), Seen(frozenset({"s-2/a.raw"})))
    assert not second.is_sure  # nothing is known before it
    assessor.accept(first)
    assessor.begin([], {})
    assert (await assessor.judge(second.candidate, Seen(frozenset({"s-2/a.raw"})))).is_sure
    assert [one.name for one in assessor.proven] == ["s-1"]


async def test_an_unproven_file_needs_a_close(tmp_path, assessor):
    assessor.accept((await assessor.judge(candidate(tmp_path, "s-1.raw", b"1"), Seen())).settled())
    unclosed = await assessor.judge(candidate(tmp_path, "s-2.raw", b"2"), Seen())
    assert "no close was seen" in unclosed.candidate.doubts[0].reason


def doubtful(found):
    return replace(found, doubts=(Doubt(DoubtKind.UNPROVEN, "its format shows no end"),))


async def test_a_restarted_worker_proves_what_it_finds_unchanged(tmp_path, assessor):
    first = doubtful(candidate(tmp_path, "s-1/a.raw", b"1"))
    assessor.begin([first], {first.name: first})
    await assessor.judge(candidate(tmp_path, "s-2/a.raw", b"2"), Seen(frozenset({"s-2/a.raw"})))
    assert assessor.proven == [first]


@pytest.mark.parametrize("continued", [True, False])
async def test_what_may_have_been_continued_while_no_worker_ran_is_not_proven(tmp_path, assessor, continued):
    first = doubtful(candidate(tmp_path, "s-1/a.raw", b"1"))
    present = {"s-1": candidate(tmp_path, "s-1/a.raw", b"22")} if continued else {}
    assessor.begin([first], present)
    second = await assessor.judge(candidate(tmp_path, "s-2/a.raw", b"2"), Seen(frozenset({"s-2/a.raw"})))
    await assessor.settle_by_success()
    assert (assessor.proven, second.is_sure) == ([], False)


async def test_what_was_continued_is_not_proven_once_it_is_gone(tmp_path, assessor):
    first = doubtful(candidate(tmp_path, "s-1/a.raw", b"1"))
    assessor.begin([first], {"s-1": first})
    assessor.saw(candidate(tmp_path, "s-1/a.raw", b"22"))
    assessor.begin([first], {})  # and removed
    await assessor.judge(candidate(tmp_path, "s-2/a.raw", b"2"), Seen(frozenset({"s-2/a.raw"})))
    await assessor.settle_by_success()
    assert assessor.proven == []


async def test_success_proves_nothing_that_was_continued(tmp_path, assessor):
    first = doubtful(candidate(tmp_path, "s-1/a.raw", b"1"))
    assessor.begin([first], {"s-1": first})
    await assessor.settle_by_success()
    assert assessor.proven == [first]
    assessor.begin([first], {"s-1": first})
    assessor.saw(candidate(tmp_path, "s-1/a.raw", b"22"))
    await assessor.settle_by_success()
    assert assessor.proven == []


async def test_success_proves_nothing_that_is_still_written(tmp_path):
    assessor = Assessor(tmp_path, TrainerContext(one_life=True, open_files=OpenFiles(sees_writers=True)))
    first = doubtful(candidate(tmp_path, "s-1.raw", b"1"))
    assessor.begin([first], {"s-1": first})
    with (tmp_path / "s-1.raw").open("ab"):
        await assessor.settle_by_success()
        assert assessor.proven == []
    await assessor.settle_by_success()
    assert assessor.proven == [first]


@pytest.mark.parametrize("same_run", [True, False])
async def test_success_proves_what_was_written_in_this_run(tmp_path, assessor, same_run):
    """A directory that is kept: the run before was killed, and this one has nothing left to train."""
    first = doubtful(candidate(tmp_path, "s-1.raw", b"1"))
    assessor.times.load(first.changed_ns + (not same_run), ())
    assessor.begin([first], {"s-1": first})
    await assessor.settle_by_success()
    assert assessor.proven == ([first] if same_run else [])


@pytest.mark.parametrize(("data", "quiet"), [(b"1", True), (b"1", False), (b"22", True)])
async def test_a_save_of_an_earlier_run_may_be_the_last_before_it_was_killed(tmp_path, assessor, data, quiet):
    first = doubtful(candidate(tmp_path, "s-1.raw", b"1"))
    assessor.times.load(first.changed_ns + 1, ())
    assessor.begin([first], {"s-1": first})
    later = candidate(tmp_path, "s-2.raw", data)
    await assessor.judge(later, Seen(frozenset({"s-2.raw"})), quiet=quiet, rested=0.0)
    assert assessor.proven == ([first] if quiet and data == b"1" else [])
