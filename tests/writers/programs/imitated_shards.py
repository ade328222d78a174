"""Shards next to each other, numbered as PyTorch/XLA does: `step-100_rank-00000000-of-00000002.bin`."""

from announce import ROOT, saving

for step in (100, 200, 300, 400):
    with saving(f"step-{step}"):
        for rank in range(2):
            with (ROOT / f"step-{step}_rank-{rank:08}-of-00000002.bin").open("wb", buffering=0) as file:
                for _ in range(3):
                    file.write(bytes([step // 100 + 10 * rank]) * 20_000)
