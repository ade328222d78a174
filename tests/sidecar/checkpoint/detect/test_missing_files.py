from __future__ import annotations

import pytest

from podferry.sidecar.checkpoint.detect.candidate import Candidate, incomplete_reason
from podferry.sidecar.checkpoint.detect.missing_files import is_proven_by_framework, missing_files
from podferry.sidecar.runtime.file_identity import FileIdentity


def of(name: str, **mtimes: int) -> Candidate:
    files = {f"{name}/{file}": FileIdentity(1, 1, mtime) for file, mtime in mtimes.items()}
    return Candidate(name, tuple(sorted(files.items())))


@pytest.mark.parametrize(
    ("candidate", "reason"),
    [
        (
            of("checkpoint-5", **{"optimizer.pt": 1, "model.safetensors": 1}),
            "trainer_state.json does not yet",
        ),
        (of("checkpoint-5", **{"optimizer.pt": 1, "trainer_state.json": 1}), None),
        (of("checkpoint-5", **{"weights.bin": 1}), None),
        (of("final", **{"training_args.bin": 1}), None),
        (of("step", **{"__0_0.distcp": 5}), "step/.metadata does not yet"),
        (of("step", **{"__0_0.distcp": 5, ".metadata": 4}), ".metadata is older than step/__0_0.distcp"),
        (of("step", **{"__0_0.distcp": 5, ".metadata": 5}), None),
        (of("step", **{"__1_0.distcp": 5, "__1.metadata": 6}), None),
        (of("checkpoint-5", **{"optimizer.bin": 1, "model.safetensors": 1}), None),  # Accelerate's
        (of("checkpoint-5", **{"optimizer.pt": 2, "trainer_state.json": 1}), "is older than"),
        (of("e", **{"variables/variables.index": 1}), "e/saved_model.pb does not yet"),
        (of("e", **{"variables/variables.index": 1, "saved_model.pb": 1}), None),
        (of("e", **{"variables/variables.index": 2, "saved_model.pb": 1}), "is older than"),
        (of("e", **{"c.data-00000-of-00001": 1}), "e/c.index does not yet"),
        (of("e", **{"c.data-00000-of-00001": 1, "c.index": 1}), None),
        (
            of("e", **{"c.data-00000-of-00002": 1, "c.index": 1}),
            "1 of 2 shards e/c.data-*-of-00002 exist",
        ),
        (of("e", **{"c_temp/part-00000-of-00001.index": 1}), "e/c.index does not yet"),
        (of("e", **{"m-00001-of-00002.safetensors": 1}), "1 of 2 shards e/m-*-of-00002.safetensors exist"),
        (of("e", **{"m-00001-of-00001.safetensors": 1}), None),
        (of("e", **{"c_rank-0-of-2.pt": 1}), "1 of 2 shards e/c_rank-*-of-2.pt exist"),
        (of("e", **{f"c_rank-{rank}-of-11.pt": 1 for rank in range(11)}), None),
        (of("e", **{"shard_1_of_2.pkl": 1}), "1 of 2 shards e/shard_*_of_2.pkl exist"),
        (of("e", **{"c_5_rank-00000001-of-00000002.pth": 1}), "e/c_5_rank-*-of-00000002.pth exist"),
        (of("e", **{"epoch-3-of-10.pt": 1}), None),
    ],
)
def test_frameworks_write_their_last_files_last(candidate, reason):
    found = incomplete_reason(candidate)
    assert found is None if reason is None else reason in found


def test_a_gang_part_may_lack_files_that_only_the_coordinator_writes():
    part, led = of("step", **{"__1_0.distcp": 5}), of("step", **{"__0_0.distcp": 5, "__1_0.distcp": 5})
    assert "does not yet" in incomplete_reason(part)
    assert incomplete_reason(part, gang=True) is None
    assert "does not yet" in incomplete_reason(led, gang=True)
    stale = of("step", **{"__1_0.distcp": 5, ".metadata": 4})
    assert "is older than" in incomplete_reason(stale, gang=True)
    shards = of("step", **{"m-00001-of-00002.safetensors": 5})
    assert incomplete_reason(shards, gang=True) is None


def test_only_shards_of_one_set_count_together():
    names = ["a-00001-of-00002.bin", "b-00002-of-00002.bin", "a-00001-of-00003.bin"]
    found = missing_files({name: FileIdentity(1, 1, 1) for name in names}, gang=False)
    assert sorted(found) == [
        "1 of 2 shards a-*-of-00002.bin exist",
        "1 of 2 shards b-*-of-00002.bin exist",
        "1 of 3 shards a-*-of-00003.bin exist",
    ]


@pytest.mark.parametrize(
    ("candidate", "proven"),
    [
        (of("step", **{"__0_0.distcp": 5, ".metadata": 5}), True),
        (of("step", **{"__0_0.distcp": 5, ".metadata": 5, "extra.pt": 6}), False),
        (of("step", **{".metadata": 5}), False),
        (of("iter_1", **{"__0_0.distcp": 5, "common.pt": 4, ".metadata": 6}), False),
        (of("step", **{"model/__0_0.distcp": 5, "model/.metadata": 5}), False),
        (of("checkpoint-5", **{"optimizer.pt": 1, "m.raw": 2, "trainer_state.json": 3}), True),
        (of("checkpoint-5", **{"optimizer.pt": 1, "rng_state_0.pth": 2, "trainer_state.json": 3}), False),
        (of("e", **{"variables/variables.index": 1, "saved_model.pb": 2}), False),
        (of("e", **{"variables/variables.index": 1, "saved_model.pb": 2, "fingerprint.pb": 3}), True),
        (of("other", **{"weights.bin": 1}), False),
    ],
)
def test_the_file_that_a_framework_writes_last_proves_all_others(candidate, proven):
    assert is_proven_by_framework(candidate.name, candidate.data_files) is proven


def test_an_index_at_the_top_proves_the_shards_of_its_stem():
    files = {"ckpt-1.data-00000-of-00001": FileIdentity(1, 1, 1), "ckpt-1.index": FileIdentity(2, 1, 2)}
    assert is_proven_by_framework("ckpt-1", files)
