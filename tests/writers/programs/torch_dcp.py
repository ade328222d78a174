"""torch DCP: two ranks save to one directory: a new one per step, and one that is overwritten."""

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
    for step in (1, 2, 3):
        state = {"weights": distribute_tensor(torch.full((64, 32), float(step)), mesh), "step": step}
        for name in (f"step-{step}", "last"):
            dcp.save(state, checkpoint_id=ROOT / name)
            dist.barrier()
            if rank == 0:
                saved(name)
            dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(train, args=(f"{folder}/meeting",), nprocs=2, start_method="fork")
