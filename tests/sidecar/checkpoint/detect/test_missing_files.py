from __future__ import annotations

import pytest

from podferry.sidecar.checkpoint.detect.candidate import Candidate, incomplete_reason, needs_long_quiet
from podferry.sidecar.checkpoint.detect.missing_files import confirmed_files, missing_files
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
    ],
)
def test_frameworks_write_their_last_files_last(candidate, reason):
    found = incomplete_reason(candidate)
    assert found is None if reason is None else reason in found


def test_a_gang_part_may_lack_files_that_only_the_coordinator_writes():
    part, led = of("step", **{"__1_0.distcp": 5}), of("step", **{"__0_0.distcp": 5, "__1_0.distcp": 5})
    assert "does not yet" in incomplete_reason(part)
    assert incomplete_reason(part, gang=True) is None
    assert needs_long_quiet(part, gang=True)
    assert "does not yet" in incomplete_reason(led, gang=True)
    stale = of("step", **{"__1_0.distcp": 5, ".metadata": 4})
    assert "is older than" in incomplete_reason(stale, gang=True)
    shards = of("step", **{"m-00001-of-00002.safetensors": 5})
    assert incomplete_reason(shards, gang=True) is None


@pytest.mark.parametrize(
    ("names", "long"),
    [
        (["epoch-3.pdparams"], True),
        (["epoch-3.pdparams", "epoch-3.pdopt"], False),
        (["m-00001-of-00001.safetensors"], True),
        (["m-00001-of-00001.safetensors", "m.safetensors.index.json"], False),
        (["checkpoint-5/config.json"], True),
        (["checkpoint-5/config.json", "checkpoint-5/trainer_state.json"], False),
        (["checkpoint-5/trainer_state.json", "checkpoint-5/rng_state_1.pth"], True),
        (["global_step5/mp_rank_00_model_states.pt", "latest"], True),
        (["iter_0000005/common.pt"], True),
        (["iter_0000005/mp_rank_00/model_optim_rng.pt"], True),
        (["checkpoint-5/optimizer.bin"], True),
        (["checkpoint-5/optimizer.bin", "checkpoint-5/random_states_0.pkl"], False),
        (["last.ckpt"], False),
        (["5/_CHECKPOINT_METADATA", "5/default/d/1"], False),
        (["weights.bin"], False),
    ],
)
def test_a_framework_that_may_resume_writing_needs_a_long_pause(names, long):
    files = tuple((name, FileIdentity(1, 1, 1)) for name in names)
    candidate = Candidate("x", files)
    assert incomplete_reason(candidate) is None
    assert needs_long_quiet(candidate) is long


def test_only_shards_of_one_set_count_together():
    names = ["a-00001-of-00002.bin", "b-00002-of-00002.bin", "a-00001-of-00003.bin"]
    found = missing_files({name: FileIdentity(1, 1, 1) for name in names}, gang=False)
    reasons = sorted(missing.reason for missing in found if missing.blocking)
    assert reasons == [
        "1 of 2 shards a-*-of-00002.bin exist",
        "1 of 2 shards b-*-of-00002.bin exist",
        "1 of 3 shards a-*-of-00003.bin exist",
    ]


def test_files_older_than_the_one_written_last_are_confirmed():
    files = {
        "c/training_args.bin": FileIdentity(1, 1, 2),
        "c/m.raw": FileIdentity(2, 1, 3),
        "c/late.raw": FileIdentity(3, 1, 5),
        "other.raw": FileIdentity(4, 1, 1),
    }
    assert confirmed_files(files) == set()
    last = {"c/trainer_state.json": FileIdentity(5, 1, 4)}
    assert confirmed_files(files | last) == {"c/training_args.bin", "c/m.raw", "c/trainer_state.json"}
