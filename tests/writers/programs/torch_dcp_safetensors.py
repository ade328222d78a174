"""torch DCP in Hugging Face's format, consolidated into safetensors by the saving process."""

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from announce import ROOT, saving
from torch.distributed.checkpoint import HuggingFaceStorageWriter

store = dist.TCPStore("127.0.0.1", 0, 1, is_master=True, wait_for_workers=False)
dist.init_process_group("gloo", store=store, rank=0, world_size=1)
for step in (1, 2, 3):
    state = {"weights": torch.full((64, 32), float(step)), "bias": torch.full((64,), float(step))}
    place = ROOT / f"step-{step}"
    place.mkdir()
    with saving(place.name):
        writer = HuggingFaceStorageWriter(
            str(place), {"weights": 1, "bias": 2}, save_distributed=True, enable_consolidation=True
        )
        dcp.save(state, storage_writer=writer)
dist.destroy_process_group()
