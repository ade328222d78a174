"""Names whose suffix is a number: `ckpt.100`, `ckpt.200`."""

from announce import ROOT, saving

for step in (100, 200, 300, 400):
    with saving(f"ckpt.{step}"), (ROOT / f"ckpt.{step}").open("wb", buffering=0) as file:
        for _ in range(3):
            file.write(bytes([step // 100]) * 20_000)
