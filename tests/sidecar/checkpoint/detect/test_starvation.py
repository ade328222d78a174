"""A trainer that saves more often than the long pause is uploaded all the same."""

from __future__ import annotations

from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.detect.starvation import Starvation
from podferry.sidecar.runtime.file_identity import FileIdentity
from tests.support.detector_bench import SETTINGS, Bench


def version(model: int, optimizer: int | None = None) -> Candidate:
    files = {"last/model": FileIdentity(1, 1, model)}
    if optimizer is not None:
        files["last/optimizer"] = FileIdentity(2, 1, optimizer)
    return Candidate("last", tuple(files.items()))


def test_a_name_starves_once_all_of_its_first_version_was_written_again() -> None:
    found = Starvation(15.0)
    found.update([version(1, 1)], {"last"}, 100.0)
    found.update([version(2, 1)], {"last"}, 110.0)
    assert not found.starves(version(2, 1), 116.0)
    assert not found.starves(version(2, 2), 114.0)
    assert found.starves(version(2, 2), 115.0)


def test_a_slow_save_does_not_starve() -> None:
    found = Starvation(15.0)
    found.update([version(1)], {"last"}, 100.0)
    assert not found.starves(version(1, 1), 200.0)


def test_what_was_accepted_or_has_gone_begins_again() -> None:
    found = Starvation(15.0)
    found.update([version(1)], {"last"}, 100.0)
    found.update([], set(), 110.0)
    assert not found.starves(version(2), 116.0)


async def test_saves_that_follow_each_other_quickly_are_committed(tmp_path) -> None:
    bench = Bench(tmp_path, one_life=True)
    commits = []
    for number in range(12):
        for name in ("last/model.raw", "last/optimizer.raw"):
            bench.write(name, bytes([number]) * 9000)
            await bench.scan(name)
        commits += await bench.scan(after=SETTINGS.quiet_seconds)
        commits += await bench.scan(after=2.0)
    assert commits == ["last"] * 2
    assert bench.doubts["last"] == {"unproven"}
