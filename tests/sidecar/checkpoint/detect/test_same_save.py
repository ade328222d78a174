"""Which files side by side one save has written, by their numbers and times."""

from __future__ import annotations

import pytest

from podferry.sidecar.checkpoint.detect.same_save import SAVE_NS, numbered_saves, worker_saves


def saves(*stems: str, gap_ns: int = 10**9) -> list[list[str]]:
    """The saves of several stems that were written in this order."""
    return numbered_saves({stem: number * gap_ns for number, stem in enumerate(stems)})


@pytest.mark.parametrize(
    "save",
    [
        ["netG_epoch_1", "netD_epoch_1"],
        ["model020000", "opt020000", "ema_0.9999_020000"],
        ["model020000", "ema_0.999_020000", "ema_0.9999_020000"],
        ["G_1000", "D_1000"],
        ["model_3", "optimizer_3", "buffer_3"],
        ["epoch_5", "swa_5"],
        ["a-epoch=5-val_loss=0.30", "b-epoch=5-val_loss=0.41"],
        ["actor_0_100", "critic_1_100"],
        ["step-5-gpu0", "step-5-gpu1"],
    ],
)
def test_stems_of_one_number_and_other_words_are_one_save(save: list[str]) -> None:
    assert saves(*save) == [save]
    assert saves(*save[::-1]) == [save[::-1]]
    assert saves(*save, gap_ns=SAVE_NS + 1) == []


@pytest.mark.parametrize(
    "stems",
    [
        ["epoch_5", "step_5"],
        ["checkpoint_5", "epoch_5"],
        ["fold_1_epoch_5", "fold_2_epoch_5"],
        ["best_5", "g_5"],
        ["last", "g_5"],
        ["model_5", "g_6"],
        ["val_loss=0.30", "g_30"],
        ["epoch=1-val_loss=0.30", "g_30"],
        ["vgg_2", "resnet_1", "resnet_2"],
        ["resnet_1", "resnet_2", "resnet_3", "vgg_1", "vgg_2", "vgg_3"],
        ["resnet50", "epoch_49", "epoch_50"],
        ["step-5-gpu0", "step-6-gpu0", "step-5-gpu1"],
        ["part1_epoch_5", "part1_epoch_6", "part2_epoch_5", "part2_epoch_6"],
    ],
)
def test_other_series_stay_apart(stems: list[str]) -> None:
    assert saves(*stems) == []


def test_each_save_has_its_own_files() -> None:
    stems = ["G_1", "D_1", "G_2", "D_2", "G_3"]
    assert saves(*stems) == [["G_1", "D_1"], ["G_2", "D_2"]]


def test_a_rank_at_the_end_is_no_step() -> None:
    stems = ["model_5_rank_0", "optim_5_rank_0", "model_6_rank_0", "optim_6_rank_0"]
    assert saves(*stems) == [stems[:2], stems[2:]]


def test_workers_without_a_step_are_one_save_if_they_count_from_0_at_one_time() -> None:
    assert worker_saves({"m_gpu1": 5, "m_gpu0": 0}) == [["m_gpu0", "m_gpu1"]]
    assert worker_saves({"m_gpu0": 0, "m_gpu1": SAVE_NS + 1}) == []
    assert worker_saves({"m_gpu1": 0, "m_gpu2": 0}) == []
