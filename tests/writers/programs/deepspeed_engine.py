"""DeepSpeed's engine, ZeRO stage 1 on one rank: a directory per step, then `latest`."""

import importlib
import os

os.environ.update(DS_ACCELERATOR="cpu", MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
os.environ.update(LOCAL_RANK="0")

import deepspeed
import torch
import torch.distributed as dist
from announce import ROOT, saved

backend = importlib.import_module("deepspeed.comm.torch")
backend.build_shm_op = lambda: None  # it would compile for minutes, and is not about checkpoints
store = dist.TCPStore("127.0.0.1", 0, 1, is_master=True, wait_for_workers=False)
dist.init_process_group("gloo", store=store, rank=0, world_size=1)
model = torch.nn.Linear(64, 64)
config = {
    "train_micro_batch_size_per_gpu": 1,
    "optimizer": {"type": "Adam", "params": {"torch_adam": True}},
    "zero_optimization": {"stage": 1},
    "bf16": {"enabled": True},
}
engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
for _ in range(3):
    engine.backward(engine(torch.ones(1, 64, dtype=torch.bfloat16)).sum())
    engine.step()
    engine.save_checkpoint(ROOT)
    saved(f"global_step{engine.global_steps}")
dist.destroy_process_group()
