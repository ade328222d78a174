"""A raw format of one's own: a new file per step, which is synced for a second before its close."""

from announce import ROOT, pause, saving

for step in (1, 2, 3):
    with saving(f"step-{step}"), (ROOT / f"step-{step}.raw").open("wb", buffering=0) as file:
        for _ in range(3):
            file.write(bytes([step]) * 20_000)
        pause(1)
