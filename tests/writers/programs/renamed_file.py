"""A raw file that is written under a temporary name and renamed, and one that is replaced."""

from announce import ROOT, saving

for step in (1, 2, 3):
    for name in (f"step-{step}.raw", "last.raw"):
        with saving(name):
            with (ROOT / f"{name}.tmp").open("wb", buffering=0) as file:
                for _ in range(3):
                    file.write(bytes([step]) * (5000 // step))
            (ROOT / f"{name}.tmp").replace(ROOT / name)
