import msgspec
import pytest

from podferry.cache.report.cache_report import CacheReport, HolderReport, Phase, cache_report
from podferry.contract.cache_api import HolderStatus
from podferry.contract.errors import Problem
from podferry.contract.status import DatasetStatus


def holder(done=0, total=100, complete=False, problems=()):
    datasets = (DatasetStatus("s3://b/c", "/x", bytes=total, bytes_done=done, volume_free=900 - done),)
    status = HolderStatus("n", datasets, ("s3://b/c",) if complete else (), problems)
    return HolderReport("p", "n", status)


SILENT = HolderReport("p", "n", None, "it does not respond")
CRASHED = HolderReport("p", "n", None, "CrashLoopBackOff", has_failed=True)
FULL, HALF = holder(100, complete=True), holder(50)
CHANGING = msgspec.structs.replace(
    FULL, status=msgspec.structs.replace(FULL.status, refreshing=("s3://b/c",))
)
FAILED = holder(0, 0, problems=(Problem("the bucket is missing"),))


@pytest.mark.parametrize(
    ("wanted", "holders", "phase"),
    [
        (0, (), Phase.EMPTY),
        (0, (FULL,), Phase.READY),
        (1, (), Phase.PENDING),
        (1, (SILENT,), Phase.PENDING),
        (1, (HALF,), Phase.FILLING),
        (2, (HALF, SILENT), Phase.FILLING),
        (2, (HALF, FAILED), Phase.FILLING),
        (2, (FULL, HALF), Phase.PARTIAL),
        (2, (FULL, FAILED), Phase.PARTIAL),
        (2, (FULL,), Phase.PARTIAL),
        (2, (FULL, FULL), Phase.READY),
        (2, (FULL, CHANGING), Phase.REFRESHING),
        (2, (CHANGING, HALF), Phase.PARTIAL),
        (2, (CHANGING,), Phase.PARTIAL),
        (1, (FAILED, SILENT), Phase.FAILED),
        (2, (CRASHED, SILENT), Phase.FAILED),
        (2, (CRASHED, HALF), Phase.FILLING),
        (2, (CRASHED, FULL), Phase.PARTIAL),
    ],
)
def test_the_phase_of_a_cache(wanted, holders, phase):
    assert CacheReport("c", "team", "s3://b/c", wanted, holders).phase is phase


def test_a_cache_without_a_statefulset_has_failed():
    report = cache_report(
        {"metadata": {"namespace": "team", "labels": {"podferry.io/cache": "d"}}}, {}, (), 5.0
    )
    assert (report.phase, report.source) == (Phase.FAILED, "")
    assert report.problems == ("it has no StatefulSet. Create it again",)


def test_sizes_are_those_of_a_dataset_not_of_all_copies():
    report = CacheReport("c", "team", "s3://b/c", 3, (FULL, HALF, SILENT))
    assert (report.total_bytes, report.cached_bytes, report.free_bytes, report.ready) == (100, 100, 800, 1)


def test_a_holder_of_an_earlier_source_serves_nothing_of_the_cache():
    service = {
        "metadata": {
            "namespace": "team",
            "labels": {"podferry.io/cache": "d"},
            "annotations": {"podferry.io/source": "s3://b/new"},
        }
    }
    reading = msgspec.structs.replace(FULL, status=msgspec.structs.replace(FULL.status, readers=("team/a",)))
    report = cache_report(service, {"spec": {"replicas": 2}}, (reading, SILENT), 0.0)
    assert (report.phase, report.ready, report.total_bytes) == (Phase.PENDING, 0, 0)
    assert "p keeps s3://b/c, and is replaced when the other holders run" in report.problems
    assert report.readers == ("team/a",)
    frozen = f"s3://b/c#sha256={'0' * 64}"
    for source, outdated in (("s3://b/c", False), ("s3://b/c/", False), (frozen, True), ("?", True)):
        service["metadata"]["annotations"]["podferry.io/source"] = source
        [one] = cache_report(service, {}, (FULL,), 0.0).holders
        assert one.is_outdated is outdated


def test_problems_are_said_once():
    report = CacheReport("c", "team", "s3://b/c", 3, (FAILED, FAILED, SILENT))
    assert report.problems == ("it does not respond", "the bucket is missing.")


def test_a_report_from_the_objects():
    labels = {"podferry.io/cache": "digits"}
    annotations = {"podferry.io/source": "s3://b/c"}
    service = {"metadata": {"namespace": "team", "labels": labels, "annotations": annotations}}
    report = cache_report(service, {"spec": {"replicas": 2}}, (FULL,), 5.0)
    assert report == CacheReport("digits", "team", "s3://b/c", 2, (FULL,), 5.0)


def test_readers_of_all_holders_without_the_holders():
    def read_by(pod, *readers):
        return HolderReport(pod, "n", HolderStatus("n", (), (), readers=readers))

    holders = (read_by("h-0", "team/h-1", "team/b"), read_by("h-1", "team/b", "lab/a"), SILENT)
    assert CacheReport("c", "team", "s3://b/c", 3, holders).readers == ("lab/a", "team/b")


@pytest.mark.parametrize(
    ("holders", "cannot"),
    [((FAILED,), True), ((FAILED, CRASHED), True), ((CRASHED,), False), ((FAILED, HALF), False), ((), False)],
)
def test_whether_waiting_can_help(holders, cannot):
    assert CacheReport("c", "team", "s3://b/c", 1, holders).cannot_fetch is cannot


@pytest.mark.parametrize(
    ("limit", "free"),
    [
        (None, 850),  # of an earlier podferry, or without --size
        (120, 70),
        (2000, 850),
        (40, 0),
    ],
)
def test_what_is_free_is_bounded_by_the_cache_s_size(limit, free):
    """The volume of a cache on disks is the node's whole file system."""
    [status] = HALF.status.datasets
    status = msgspec.structs.replace(status, size_limit=limit)
    report = CacheReport("c", "n", "s", 1, (HolderReport("p", "n", HolderStatus("n", (status,), ())),))
    assert report.free_bytes == free


@pytest.mark.parametrize(
    ("status", "replacing"),
    [
        ({}, True),
        ({"observedGeneration": 1, "currentRevision": "a", "updateRevision": "a"}, True),
        ({"observedGeneration": 2, "currentRevision": "a", "updateRevision": "b"}, True),
        (
            {"observedGeneration": 2, "currentRevision": "a", "updateRevision": "b", "updatedReplicas": 1},
            True,
        ),
        (
            {"observedGeneration": 2, "currentRevision": "a", "updateRevision": "b", "updatedReplicas": 2},
            False,
        ),
        ({"observedGeneration": 2, "currentRevision": "b", "updateRevision": "b"}, False),
    ],
)
def test_whether_holders_are_still_to_be_replaced(status, replacing):
    metadata = {"name": "x", "namespace": "team", "labels": {"podferry.io/cache": "digits"}}
    workload = {"metadata": {"generation": 2}, "spec": {"replicas": 2}, "status": status}
    assert cache_report({"metadata": metadata}, workload, (), 0.0).is_replacing is replacing
