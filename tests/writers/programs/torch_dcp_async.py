"""torch DCP, asynchronous: training goes on while a thread writes; the next save waits for the one before."""

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from announce import ROOT, saving

store = dist.TCPStore("127.0.0.1", 0, 1, is_master=True, wait_for_workers=False)
dist.init_process_group("gloo", store=store, rank=0, world_size=1)
for step in (1, 2, 3):
    state = {"weights": torch.full((64, 32), float(step)), "step": step}
    with saving(f"step-{step}"):
        dcp.async_save(state, checkpoint_id=ROOT / f"step-{step}").result()
dist.destroy_process_group()
