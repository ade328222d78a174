"""Which files at the top belong to one checkpoint."""

from __future__ import annotations

import pytest

from podferry.sidecar.checkpoint.detect.candidate import candidate_name, candidates
from podferry.sidecar.checkpoint.detect.flat_groups import has_numbered_suffix
from podferry.sidecar.runtime.file_identity import FileIdentity


def groups(*names):
    found = candidates({name: FileIdentity(1, 1, 1) for name in names})
    return {name: [file for file, _ in one.files] for name, one in found.items()}


@pytest.mark.parametrize(
    ("names", "checkpoints"),
    [
        (["model.pt", "optimizer.pt", "scheduler.pt"], ["model"]),
        (["optim_100.pt", "model_100.pt", "model_200.pt"], ["model_100", "model_200"]),
        (["100_net_D.pth", "100_net_G.pth", "latest_net_D.pth"], ["100_net_D", "latest_net_D"]),
        (["best_model.pt", "last_model.pt"], ["best_model", "last_model"]),
        (["config.json", "model.safetensors", "tokenizer.json", "vocab.txt"], ["model"]),
        (["model.onnx", "model.onnx.data"], ["model"]),
        (["best.pt", "last.pt"], ["best", "last"]),
        (["epoch=1-step=2.ckpt", "last.ckpt"], ["epoch=1-step=2", "last"]),
        (["model.pt", "train.log"], ["model", "train.log"]),
        (["model/a.bin", "optimizer.pt"], ["model", "optimizer"]),
        (["ckpt.100", "ckpt.200"], ["ckpt.100", "ckpt.200"]),
        (["model.txt.snapshot_iter_10"], ["model.txt.snapshot_iter_10"]),
        (["model.txt.snapshot_iter_10", "model.txt.snapshot_iter_20"], None),
        (["epoch-3.pdopt", "epoch-3.pdparams"], ["epoch-3"]),
        (["netD_epoch_1.pth", "netG_epoch_1.pth"], ["netD_epoch_1"]),
        (["ema_0.9999_020000.pt", "model020000.pt", "opt020000.pt"], ["model020000"]),
        (["decoder-2-3000.ckpt", "encoder-2-3000.ckpt"], ["encoder-2-3000"]),
        (["D_1000.pth", "G_1000.pth"], ["D_1000"]),
        (["buffer_3.pkl", "model_3.pt", "optimizer_3.pt"], ["model_3"]),
        (["buffer_3.pkl", "metrics_3.json", "samples_3.png", "losses_3.npy"], None),
        (["epoch=1-step=3000.ckpt", "model-epoch=1-step=3000.ckpt"], None),
        (["ckpt.pt.1", "other_1.pt"], None),
        (["step_1/w.bin", "other_1.pt"], ["step_1", "other_1"]),
        (["netD.pth", "netG.pth"], ["netD"]),
        (["checkpoint_1_200-shard0.pt", "checkpoint_1_200-shard1.pt"], ["checkpoint_1_200"]),
        (["c_5_rank-00000000-of-00000002.bin", "c_5_rank-00000001-of-00000002.bin"], ["c_5"]),
        (["step-1-rank0.pkl", "step-1-rank1.pkl", "step-2-rank0.pkl"], ["step-1", "step-2"]),
        (["model_rank_0.pt", "model_rank_1.pt", "optim_rank_0.pt", "optim_rank_1.pt"], ["model"]),
        (["model_5_gpu0.pt", "model_5_gpu1.pt", "optim_5_gpu0.pt"], ["model_5_gpu0"]),
        (
            ["s_5_tp0_pp0.pt", "s_5_tp0_pp1.pt", "s_5_tp1_pp0.pt", "s_6_tp0_pp0.pt"],
            ["s_5_tp0_pp0", "s_6_tp0_pp0"],
        ),
        (["state_worker0.pt", "state_worker1.pt"], ["state_worker0"]),
        (["w_part_1.pt", "w_part_2.pt"], None),
        (["node_100.pt", "node_200.pt"], None),
        (["gpu0.pt", "gpu1.pt"], None),
        (["exp_dp_0.pt", "exp_dp_1.pt"], None),
        (["x_epoch-1-of-10.pt", "x_epoch-2-of-10.pt"], None),
        (["agent.pkl", "replay_buffer.pkl"], ["agent"]),
        (["agent.pkl", "other.pkl"], None),
    ],
)
def test_parts_of_one_save_are_one_checkpoint(names, checkpoints):
    found = groups(*names)
    assert sorted(found) == sorted(checkpoints or map(candidate_name, names))
    assert sorted(file for files in found.values() for file in files) == sorted(names)


@pytest.mark.parametrize("name", ["a.100", "ckpt.step-100", "m.snapshot_iter_7", "c.step100", "c.epoch3"])
def test_a_number_at_the_end_is_part_of_the_name(name):
    assert has_numbered_suffix(name)
    assert candidate_name(name) == name


@pytest.mark.parametrize("name", ["a.h5", "a.pt2", "a.bz2", "a.pt", "plain", "c-1.data-00000-of-00001"])
def test_other_suffixes_are_formats(name):
    assert not has_numbered_suffix(name)
