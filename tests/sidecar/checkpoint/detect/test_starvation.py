"""A trainer that saves more often than the long pause is uploaded all the same."""

from __future__ import annotations

import os

from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.detect.starvation import HeldUp, Starvation
from podferry.sidecar.runtime.file_identity import FileIdentity
from tests.support.detector_bench import SETTINGS, WHOLE, Bench


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


def test_what_is_held_up_for_long_enough_is_overdue_until_it_changes() -> None:
    held = HeldUp(15.0)
    held.update([version(1)], 100.0)
    assert not held.is_overdue(version(1), 114.0)
    assert held.is_overdue(version(1), 115.0)
    assert not held.is_overdue(version(2), 115.0)
    held.update([], 116.0)
    assert not held.is_overdue(version(1), 131.0)


async def test_a_file_that_never_rests_holds_no_checkpoint_up_for_ever(tmp_path) -> None:
    """Its modification time is set back with each write, so it stays the older one."""
    bench = Bench(tmp_path)
    bench.write("ckpt-1.pkl", WHOLE)
    bench.write("study.lock", b"1")
    await bench.scan("ckpt-1.pkl")
    commits = []
    for number in range(50):
        (tmp_path / "study.lock").write_bytes(b"1" * (number + 1))
        os.utime(tmp_path / "study.lock", ns=(0, 0))
        commits.append(await bench.scan("study.lock", after=0.4))
    assert ["ckpt-1"] not in commits[:38]
    assert ["ckpt-1"] in commits[38:]
