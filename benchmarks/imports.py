"""What importing the functions that compose a pipeline costs over importing kfp: CPU time, in new processes.

python benchmarks/imports.py
"""

from __future__ import annotations

import subprocess
import sys
from statistics import median

RUNS = 15
BAR_MS = 50.0
CODE = """
import time
import kfp
began = time.process_time()
{statement}
print(1000 * (time.process_time() - began))
"""
STATEMENTS = {
    "podferry.components": (
        "from podferry.components import dataset, cache, gpu_train, verify_checkpoint, train_job, why"
    ),
    "kfp.kubernetes alone": "import kfp.kubernetes",
}


def milliseconds(statement: str) -> float:
    """CPU milliseconds of a statement in a new process that has imported kfp."""
    command = [sys.executable, "-c", CODE.format(statement=statement)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> int:
    """Print the medians; 1 if the bar is missed."""
    found = {name: median(milliseconds(text) for _ in range(RUNS)) for name, text in STATEMENTS.items()}
    for name, value in found.items():
        sys.stdout.write(f"{name}: {value:.0f} ms over import kfp (median of {RUNS})\n")
    return int(found["podferry.components"] > BAR_MS)


if __name__ == "__main__":
    sys.exit(main())
