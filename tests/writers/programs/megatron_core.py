"""Megatron Core's distributed checkpointing, and the tracker that Megatron-LM writes after it.

The tracker and the tokenizer's files are imitated: `megatron.training`, which writes them, is not packaged.
Source: megatron/training/checkpointing.py (`save_checkpoint`).
"""

import multiprocessing
import tempfile

import torch
import torch.distributed as dist
from announce import ROOT, saved
from megatron.core import dist_checkpointing, parallel_state
from megatron.core.dist_checkpointing.strategies import filesystem_async

filesystem_async._get_write_results_queue = lambda: RESULTS  # its own starts an interpreter for each save
torch.cuda.synchronize = lambda: None  # works without a GPU
torch.cuda.current_device = lambda: torch.device("cpu")


def train(folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=0, world_size=1)
    parallel_state.initialize_model_parallel()
    for iteration in (1, 2, 3):
        state = {
            "iteration": iteration,
            "weights": dist_checkpointing.ShardedTensor.from_rank_offsets(
                "weights", torch.full((64, 32), float(iteration))
            ),
        }
        place = ROOT / f"iter_{iteration:07d}"
        place.mkdir()
        dist_checkpointing.save(state, str(place), ("torch_dist", 1))
        with (ROOT / "latest_checkpointed_iteration.txt").open("w") as tracker:
            tracker.write(str(iteration))
        (place / "tokenizer").mkdir()
        (place / "tokenizer" / "vocab.txt").write_text("a\nb\n")
        saved(place.name)
    dist.destroy_process_group()


tempfile.tempdir = "/tmp"  # the path of a socket has at most 107 bytes
with tempfile.TemporaryDirectory() as meeting, multiprocessing.get_context("fork").Manager() as manager:
    RESULTS = manager.Queue()
    train(meeting)
