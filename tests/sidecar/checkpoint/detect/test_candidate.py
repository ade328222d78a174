import pytest

from podferry.sidecar.checkpoint.detect.candidate import (
    Candidate,
    candidate_name,
    candidates,
    incomplete_reason,
    ready_at,
)
from podferry.sidecar.checkpoint.detect.change_tracker import TrackedFile
from podferry.sidecar.runtime.file_identity import FileIdentity


def seen(*names: str) -> dict[str, FileIdentity]:
    return {name: FileIdentity(number, 1, number) for number, name in enumerate(names)}


def of(name: str, **mtimes: int) -> Candidate:
    files = {f"{name}/{file}": FileIdentity(1, 1, mtime) for file, mtime in mtimes.items()}
    return Candidate(name, tuple(sorted(files.items())))


@pytest.mark.parametrize(
    ("name", "candidate"),
    [
        ("epoch-3.pdparams", "epoch-3"),
        ("epoch-3.pdopt", "epoch-3"),
        ("epoch-3/deep/w.bin", "epoch-3"),
        ("ckpt-1.data-00000-of-00001", "ckpt-1"),
        ("model.v1/w.bin", "model.v1"),
        ("last", "last"),
        ("model-00001-of-00002.safetensors", "model"),
        ("model.safetensors.index.json", "model"),
        ("pytorch_model.bin.index.json", "pytorch_model"),
        ("model.safetensors", "model"),
        ("-00001-of-00002.bin", "-00001-of-00002"),
        ("checkpoint_1_200-shard0.pt", "checkpoint_1_200"),
        ("ckpt_200_rank-00000000-of-00000002.pth", "ckpt_200"),
        ("rank0_step-200.pt", "step-200"),
        ("step-200-rank-1-of-2.pt", "step-200"),
        ("model_part1of2.pt", "model"),
        ("model_rank_0.pt", "model"),
        ("model-epoch-3-of-10.pt", "model-epoch-3-of-10"),
        ("checkpoint-01-of-10.pt", "checkpoint-01-of-10"),
        ("lambdarank_5.pt", "lambdarank_5"),
        ("rank_5.pt", "rank_5"),
        ("model-rank0.log", "model-rank0.log"),
        ("node_100.pt", "node_100"),
        ("step-200-gpu1.pt", "step-200-gpu1"),
        ("exp1.bin", "exp1"),
        ("exp1.log", "exp1.log"),
        ("exp1/train.log", "exp1"),
    ],
)
def test_a_candidate_is_named_after_its_directory_or_stem(name, candidate):
    assert candidate_name(name) == candidate


def test_unfinished_names_at_the_top_belong_to_no_candidate():
    found = candidates(seen("a.pdopt", "a.pdparams", "a.pdopt.tmp", "tmpx123456_/a", "b/c", ".d/e"))
    assert {name: [file for file, _ in held.files] for name, held in found.items()} == {
        "a": ["a.pdopt", "a.pdparams"],
        "b": ["b/c"],
    }


def test_a_log_belongs_to_no_checkpoint_that_shares_its_stem():
    """It grows all the time, so the checkpoint would never be quiet."""
    found = candidates(seen("exp1.log", "exp1.bin", "exp1.json"))
    assert {name: [file for file, _ in held.files] for name, held in found.items()} == {
        "exp1": ["exp1.bin", "exp1.json"],
        "exp1.log": ["exp1.log"],
    }


def test_scripts_that_a_framework_copies_next_to_checkpoints_are_ignored():
    assert set(candidates(seen("zero_to_fp32.py", "global_step1/w", "mine.py"))) == {"global_step1", "mine"}


def test_a_pointer_belongs_to_the_checkpoint_that_it_names():
    files = seen("latest", "checkpoint", "step1/w", "step2/w")
    found = candidates(files, {"latest": "step2", "checkpoint": "gone"})
    assert sorted(found) == ["step1", "step2"]
    assert [name for name, _ in found["step2"].files] == ["latest", "step2/w"]


@pytest.mark.parametrize(
    ("candidate", "reason"),
    [
        (of("a", **{"w.bin": 1}), None),
        (of("a", **{"w.bin": 1, "w.tmp": 1}), "a/w.tmp is named like an unfinished file"),
        (of("a", **{"bad\nname": 1}), "control characters"),
        (of("a", **{"w\udcff": 1}), "not UTF-8"),
        (of("n" * 250, w=1), "longer than 255 bytes"),
    ],
)
def test_names_show_that_a_candidate_is_incomplete(candidate, reason):
    found = incomplete_reason(candidate)
    assert found is None if reason is None else reason in found


def test_a_small_file_that_is_only_called_like_a_pointer_has_versions():
    first, second = (Candidate("latest", (("latest", FileIdentity(1, 9, mtime)),)) for mtime in (1, 2))
    assert first.version != second.version


def test_a_candidate_that_lost_files_is_a_subset():
    full, part = of("a", x=1, y=1), of("a", x=1)
    assert part.is_subset_of(full)
    assert full.is_subset_of(full)
    assert not full.is_subset_of(part)
    assert not of("a", x=2).is_subset_of(full)
    assert not part.is_subset_of(None)


def test_a_candidate_is_ready_when_its_last_file_is():
    identity = FileIdentity(1, 1, 1)
    files = [TrackedFile(identity, 10.0, closed=True), TrackedFile(identity, 8.0, closed=False)]
    assert ready_at(files, 1.0, 5.0) == 13.0
    assert ready_at(files[:1], 1.0, 5.0) == 11.0
