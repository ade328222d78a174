"""`python -m faults.fetches --seed S --n N`: N prefetches through faults, from seed S on.

Each is a whole `podferry dataset get` of one dataset: first each kind of fault by itself, then mixes of
them by seed. What came must be right to the last byte, or the error must name what is wrong. Exits with 1
where neither is so.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from faults.fetching import AWAY, KINDS, Fetched, Fetching, dataset, is_data, mix, put
from faults.messages import Head
from faults.plan import Fault
from faults.store import served
from tests.support.isolation import isolate

SMALL = 40
"""Small files in the dataset."""
PREFIX = "fetched"


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m faults.fetches", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first (%(default)s)")
    parser.add_argument("--n", type=int, default=20, help="mixes of faults (%(default)s)")
    parser.add_argument("--store", choices=("auto", "versitygw", "moto"), default="auto")
    return parser.parse_args()


def fetches(fetching: Fetching, first: int, count: int, folder: Path) -> Iterator[tuple[str, Fetched]]:
    """Each kind by itself, then the mixes, every other one sparing lists; what it was, and what came of it.

    Args:
        fetching: From where.
        first: The first seed.
        count: How many mixes.
        folder: For the stages, each removed when it has been looked at.
    """
    for kind in KINDS:
        alone = Fault(kind, pod=1, count=2, part=0.4, seconds=AWAY)
        yield kind, fetching(folder / "stage", alone, only=is_data)
        _empty(folder)
    for seed in range(first, first + count):
        spared = is_data if seed % 2 else _any
        yield f"seed {seed}", fetching(folder / "stage", *mix(seed), only=spared)
        _empty(folder)


def _any(_: Head) -> bool:
    return True


def _empty(folder: Path) -> None:
    for left in folder.iterdir():
        shutil.rmtree(left)


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def say(name: str, fetched: Fetched) -> None:
    """One line for a prefetch."""
    ended = (
        "all of it came" if fetched.code == 0 else f"ended with {fetched.code}: {fetched.said.strip()[-200:]}"
    )
    fired = ", ".join(f"{kind} {count}" for kind, count in fetched.fired.most_common())
    _print(f"{name}: {fired or 'nothing hit'}; {ended}; {'; '.join(fetched.flaws) or 'ok'}")


def report(done: Sequence[tuple[str, Fetched]], store: str) -> int:
    """The figures; 1 where something was wrong, else 0."""
    fired = sum((fetched.fired for _, fetched in done), Counter[str]())
    whole = sum(fetched.code == 0 for _, fetched in done)
    broken = [(name, flaw) for name, fetched in done for flaw in fetched.flaws]
    _print(f"\n{len(done)} prefetches, {fired.total()} faults; store: {store}")
    for kind, count in fired.most_common():
        _print(f"  {count:5}  {kind}")
    _print(f"survived: {whole}; ended with an error that names it: {len(done) - whole - len(dict(broken))}")
    _print(f"wrong, missing, unnamed or stuck: {len(dict(broken))}")
    for name, flaw in broken:
        _print(f"  {name}: {flaw}")
    return 1 if broken else 0


def main() -> int:
    """The exit code: 0 if everything was right or named."""
    given = parse()
    isolate(os.environ)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    files = dataset(given.seed, SMALL)
    done = []
    with served(given.store) as store, tempfile.TemporaryDirectory(prefix="podferry-fetches-") as folder:
        put(store.open(), PREFIX, files)
        for name, fetched in fetches(Fetching(store, PREFIX, files), given.seed, given.n, Path(folder)):
            done.append((name, fetched))
            say(name, fetched)
        return report(done, store.name)


if __name__ == "__main__":
    sys.exit(main())
