"""A directory of checkpoint files that `cp -r` copies to a new place, and over an older one."""

import os
import subprocess
import tempfile
from pathlib import Path

from announce import ROOT, saving

for step in (1, 2, 3):
    with tempfile.TemporaryDirectory() as folder:
        for part in ("weights", "optimizer", "schedule"):
            Path(folder, f"{part}.raw").write_bytes(bytes([step]) * 30_000)
        for name in (f"step-{step}", "last"):
            with saving(name):
                (ROOT / name).mkdir(exist_ok=True)
                subprocess.run(["cp", "-r", f"{folder}/.", str(ROOT / name)], check=True, env=os.environ)
