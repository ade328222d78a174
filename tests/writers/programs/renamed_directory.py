"""Raw files, written into a directory with another name that is renamed when it is whole."""

from announce import ROOT, saving

for step in (1, 2, 3):
    aside = ROOT / f"step-{step}.tmp"
    with saving(f"step-{step}"):
        aside.mkdir()
        for part in ("weights", "optimizer"):
            with (aside / f"{part}.raw").open("wb", buffering=0) as file:
                for _ in range(3):
                    file.write(bytes([step]) * (5000 // step))
        aside.rename(ROOT / f"step-{step}")
