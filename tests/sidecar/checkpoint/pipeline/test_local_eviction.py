import shutil

import msgspec
import pytest

from podferry.contract.destination.kind import Kind
from podferry.contract.status import DurableCheckpoint
from podferry.sidecar.checkpoint.detect.candidate import candidates
from podferry.sidecar.checkpoint.detect.detector import scan_checkpoints
from podferry.sidecar.checkpoint.pipeline.local_eviction import evict, evictable, pointer_text
from podferry.sidecar.runtime.file_identity import FileIdentity

BIG = 5000


def committed(*names, doubtful=""):
    """Commits of these names, oldest first."""
    return [
        DurableCheckpoint(name, number, None, BIG, 1.0, 2.0, ("open",) if name in doubtful else ())
        for number, name in enumerate(names)
    ]


PRESENT = candidates({f"{name}/w": FileIdentity(1, BIG, 1) for name in "abcd"})


@pytest.mark.parametrize(
    ("durable", "keep", "pointed", "names"),
    [
        ("abc", 1, "", "ab"),
        ("abc", 2, "", "a"),
        ("abc", 9, "", ""),
        ("abc", 0, "", "ab"),  # the newest always stays
        ("c", 1, "", ""),
        ("", 1, "", ""),
        ("xab", 1, "", "a"),  # x is no longer there
        ("bca", 1, "", "bc"),  # oldest first, d is not durable
        ("abc", 1, "use a", "b"),
    ],
)
def test_only_older_durable_checkpoints_may_go(durable, keep, pointed, names):
    pointed = pointed.replace("use", "").strip() or "-"
    assert [found.name for found in evictable(committed(*durable), PRESENT, keep, pointed)] == list(names)


@pytest.mark.parametrize(
    ("doubtful", "keep", "names"),
    [("d", 1, "ab"), ("cd", 1, "ac"), ("cd", 2, "a"), ("abcd", 1, "abc"), ("a", 1, "abc")],
)
def test_the_newest_sure_one_stays_whatever_is_newer(doubtful, keep, names):
    durable = committed(*"abcd", doubtful=doubtful)
    assert [found.name for found in evictable(durable, PRESENT, keep, "-")] == list(names)


def test_a_small_one_may_be_a_pointer_and_frees_nothing():
    present = {**PRESENT, **candidates({"best.txt": FileIdentity(1, 30, 1)})}
    assert [found.name for found in evictable(committed("best", "a", "b"), present, 1, "-")] == ["a"]


def test_pointers_are_small_files_at_the_top(tmp_path):
    (tmp_path / "step").mkdir()
    (tmp_path / "step" / "config.json").write_text("nested")
    (tmp_path / "latest").write_text("step")
    (tmp_path / "best.txt").write_text("best")
    (tmp_path / "e1.json").write_text("itself")
    (tmp_path / "e1.pt").write_text("x")
    (tmp_path / "big.bin").write_bytes(b"b" * 5000)
    text = pointer_text(tmp_path, scan_checkpoints(tmp_path)[1])
    assert sorted(text.split()) == ["best", "step"]


def test_evict_removes_only_the_files_that_were_scanned(tmp_path):
    for name in ("a/w", "a/deep/v", "b/w"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"1")
    found = scan_checkpoints(tmp_path)[1]
    (tmp_path / "a" / "foreign").write_bytes(b"f")
    assert evict(tmp_path, found["a"])
    assert evict(tmp_path, found["b"])
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == ["a", "a/foreign"]


@pytest.mark.parametrize("change", ["overwritten", "removed", "removed with its directory"])
def test_what_changed_since_the_scan_is_not_evicted(tmp_path, change):
    (tmp_path / "a").mkdir()
    for name in ("v", "w"):
        (tmp_path / "a" / name).write_bytes(b"1")
    found = scan_checkpoints(tmp_path)[1]["a"]
    if change == "overwritten":
        (tmp_path / "a" / "w").write_bytes(b"newer")
    elif change == "removed":
        (tmp_path / "a" / "w").unlink()
    else:
        shutil.rmtree(tmp_path / "a")
    assert not evict(tmp_path, found)
    assert (tmp_path / "a" / "v").exists() == (change != "removed with its directory")


def test_metrics_push_no_state_out():
    present = {**PRESENT, **candidates({f"m{one}.csv": FileIdentity(1, BIG, 1) for one in (1, 2)})}
    plots = [msgspec.structs.replace(one, kind=Kind.RECORD) for one in committed("m1.csv", "m2.csv")]
    durable = [*committed("a", "b"), *plots]
    assert [found.name for found in evictable(durable, present, 1, "-")] == ["a", "m1.csv"]
