"""`python -m faults --seed S --n N`: random faults against the agent, from seed S on, N of them or more.

Each episode is one seed, and its outcome a file below `build/faults`: an interrupted run resumes
where it stopped. With `--log FILE`, several runs share one file, and the figures are those of all of
them. Exits with 1 where a promise was broken, and says by which seed.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path

from faults.known import KNOWN, available
from faults.log import Log
from faults.report import report, say, say_proof
from faults.run import Run
from faults.store import served
from tests.support.isolation import isolate

USUAL = list(KNOWN)


def parse() -> argparse.Namespace:
    """The command line; unknown writers are reported with the known ones."""
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first (%(default)s)")
    parser.add_argument("--n", type=int, default=40, help="faults (%(default)s)")
    parser.add_argument("--writers", default="", help="names, with commas between (all that can be had)")
    parser.add_argument("--store", choices=("auto", "versitygw", "moto"), default="auto")
    parser.add_argument("--jobs", type=int, default=2, help="episodes at once (%(default)s)")
    parser.add_argument("--build", type=Path, default=Path("build/faults"), help="where the records go")
    parser.add_argument("--log", type=Path, help="a file with the records of all runs, skipped and summed up")
    parser.add_argument("--keep", action="store_true", help="keep logs and ledgers where all was well, too")
    parser.add_argument("--prove", action="store_true", help="take each defence out: does the oracle notice?")
    given = parser.parse_args()
    given.writers = [name for name in given.writers.split(",") if name] or USUAL
    unknown = [name for name in given.writers if name not in KNOWN]
    if unknown:
        parser.error(f"--writers {','.join(unknown)}: there are {', '.join(KNOWN)}")
    given.pythons = available(given.writers)
    if not given.pythons:
        parser.error(f"no library of {', '.join(given.writers)} can be imported")
    return given


def play(given: argparse.Namespace) -> int:
    """Run the command line; the exit code."""
    began = time.monotonic()
    with served(given.store) as store:
        run = Run(store, given.pythons, given.build, given.jobs, given.keep, given.log and Log(given.log))
        if given.prove:
            noticed: list[bool] = []
            run.prove(lambda name, record: noticed.append(say_proof(name, record)))
            return 0 if noticed and all(noticed) else 1
        records = run.seeds(given.seed, given.n, say)
    return report(records, given.writers, store, time.monotonic() - began)


def main() -> int:
    """The exit code: 0 where every promise was kept."""
    given = parse()
    isolate(os.environ)
    # An end by kill is as one by Ctrl-C: store and pods go with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    given.build.mkdir(parents=True, exist_ok=True)
    try:
        return play(given)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: the same command resumes from here\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
