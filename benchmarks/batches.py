"""How long a batch of pictures takes: from the stage, and straight from OSS, as Alibaba's guide measures.

"Best practice for OSS read/write splitting" reports 1.542 s for a batch before, and 0.844 s after reads and
writes are split. Here the example `read-write-split` runs on an imitation of OSS, which responds after a
delay, as a network does: its figures compare the ways, and are not those of OSS.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from statistics import median

from report import machine
from serving import MEMORY, with_load

from demo.examples.read_write_split import pictures
from podferry.pipelines.read_write_split.training import Measured, train
from tests.support.isolation import isolate
from tests.support.oss.server import KEY_ID, KEY_SECRET, REGION

ROOT = Path(__file__).parents[1]
DELAYS = (0.0, 0.005)
"""Seconds: a server on this machine, and one in the same region."""
BATCH = 32


@contextmanager
def serving(folder: Path, delay: float) -> Iterator[str]:
    """The endpoint of an imitation of OSS with the files of a folder."""
    words = [sys.executable, "-m", "tests.support.oss.server", "127.0.0.1", "0", str(folder), str(delay)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None  # noqa: S101 - it is a pipe
            yield json.loads(process.stdout.readline())["endpoint"]
        finally:
            process.terminate()


def measured(folder: Path, delay: float, epochs: int) -> Measured:
    """One training on the pictures."""
    with serving(folder, delay) as endpoint:
        keys = {"OSS_ACCESS_KEY_ID": KEY_ID, "OSS_ACCESS_KEY_SECRET": KEY_SECRET}
        os.environ.update(keys, OSS_REGION=REGION, OSS_ENDPOINT=endpoint)
        return train("oss://bucket/pictures", "oss://bucket/checkpoints", epochs, BATCH)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=3, help="trainings (default: %(default)s)")
    parser.add_argument("--short", action="store_true", help="one training: shows that it runs")
    given = parser.parse_args(words)
    isolate(os.environ)
    rows = []
    with tempfile.TemporaryDirectory(dir=MEMORY) as place:
        for name, data in pictures():
            path = Path(place, "pictures", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        for delay in DELAYS[: 1 if given.short else None]:
            found = [measured(Path(place), delay, 1) for _ in range(1 if given.short else given.runs)]
            staged, remote = (
                median(getattr(one, f"{way}_batch_ms") for one in found) for way in ("staged", "remote")
            )
            rows.append((delay, staged, remote))
    for delay, staged, remote in rows:
        place = f"an imitation of OSS, {1000 * delay:.0f} ms away"
        ratio = f"{remote / staged:.1f} times"
        print(f"a batch of {BATCH}: {remote:.1f} ms from {place}, {staged:.1f} ms from the stage: {ratio}")
    print(with_load(machine(podferry=version("podferry"), server="an imitation of OSS")))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
