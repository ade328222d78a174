"""The benchmarks' own logic: what it computes, without a server and without a clock."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
