"""A raw format of one's own: a new file per step, and one that is overwritten in place, of the same size."""

from announce import ROOT, saving

for step in (1, 2, 3):
    for name in (f"step-{step}.raw", "last.raw"):
        with saving(name), (ROOT / name).open("r+b" if (ROOT / name).exists() else "wb", buffering=0) as file:
            for _ in range(3):
                file.write(bytes([step]) * 20_000)
