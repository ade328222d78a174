"""torch DCP over two pods: each rank has its own directory; only the coordinator's gets `.metadata`."""

import tempfile

import torch
import torch._dynamo  # saving needs it, and importing it takes seconds
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from announce import ROOT, saved
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import distribute_tensor


def train(rank, meeting):
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    for step in (1, 2):
        state = {"weights": distribute_tensor(torch.full((64, 32), float(step)), mesh), "step": step}
        dcp.save(state, checkpoint_id=ROOT / f"pod-{rank}" / f"step-{step}")
        dist.barrier()
        if rank == 0:
            saved(f"step-{step}")
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    for rank in range(2):
        (ROOT / f"pod-{rank}").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(train, args=(f"{folder}/meeting",), nprocs=2, start_method="fork")
