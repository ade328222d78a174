"""`python -m faults.run_kills`: each process of `podferry run` is killed in each phase; prints a table.

A cell is a run with a dataset, whose trainer saves a checkpoint, waits for the kill, and saves another one;
on SIGTERM it takes its time for a last one. What was saved and is neither durable nor named, by the run or by
`podferry leftovers ls`, is a silent loss, and so is an exit code of success for what is not durable. Exits
with 1 if there was one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from faults.killed_run import PHASES, TRAINER, TRAINING, VICTIMS, Cell, Run
from faults.store import Served, served
from tests.support.isolation import isolate

WIDTHS = (10, 8, 7, 18, 18, 18)
"""Of the columns of the table."""


def cells(store: Served, wanted: Sequence[tuple[str, str]]) -> Iterator[Cell]:
    """Play runs; those whose victim does not live in their phase are left out."""
    for victim, phase in wanted:
        if victim == TRAINER and phase != TRAINING:
            continue
        folder = Path(tempfile.mkdtemp(prefix="podferry-run-kills-"))
        try:
            yield Run(store, folder, victim, phase).play()
        finally:
            shutil.rmtree(folder)


def line(cell: Cell) -> str:
    """One row of the table."""
    code = signal.Signals(-cell.code).name if cell.code < 0 else str(cell.code)
    parts = [", ".join(names) or "-" for names in (cell.saved, cell.durable, cell.named)]
    rescued = "" if not cell.left else f"; uploaded later: {', '.join(cell.rescued) or 'nothing'}"
    result = f"LOST: {', '.join(cell.silent)}" if cell.silent else "ok"
    columns = (cell.victim, cell.phase, code, *parts)
    cells = [f"{text:<{width}}" for text, width in zip(columns, WIDTHS, strict=True)]
    return "  ".join([*cells, f"{result}{rescued}"])


def main() -> int:
    """The exit code: 0 without a silent loss."""
    parser = argparse.ArgumentParser(prog="python -m faults.run_kills", description=__doc__)
    parser.add_argument("--store", choices=("auto", "versitygw", "moto"), default="auto")
    given = parser.parse_args()
    isolate(os.environ)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    wanted = [(victim, phase) for victim in VICTIMS for phase in PHASES]
    done = []
    with served(given.store) as store:
        sys.stdout.write(
            "killed      phase     exit     saved                      durable                    named\n"
        )
        for cell in cells(store, wanted):
            done.append(cell)
            sys.stdout.write(line(cell) + "\n")
            sys.stdout.flush()
    lost = [cell for cell in done if cell.silent]
    sys.stdout.write(f"\n{len(done)} runs, silent losses: {len(lost)}\n")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
