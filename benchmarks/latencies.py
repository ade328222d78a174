"""Opens and reads files one after another, in a random order, and prints how long each took.

    latencies.py DIRECTORY COUNT

Prints JSON: for a first pass over COUNT files and for a second one, two percentiles in seconds.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Sequence
from statistics import quantiles


def measured(names: Sequence[str]) -> dict[str, float]:
    """The percentiles of one pass."""
    seconds = []
    for name in names:
        started = time.perf_counter()
        descriptor = os.open(name, os.O_RDONLY)
        while os.read(descriptor, 1 << 20):
            pass
        os.close(descriptor)
        seconds.append(time.perf_counter() - started)
    shares = quantiles(seconds, n=100, method="inclusive")
    return {"p50": shares[49], "p99": shares[98]}


def main(folder: str, count: str) -> None:
    names = sorted(f"{place}/{name}" for place, _, found in os.walk(folder) for name in found)
    chosen = random.Random(0).sample(names, min(int(count), len(names)))  # noqa: S311 - an order, no secret
    print(json.dumps({"first": measured(chosen), "again": measured(chosen)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
