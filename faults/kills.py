"""`python -m faults.kills --seed S --n N`: kill -9 of the worker at N random moments of its uploads.

What comes at the store is counted part by part: nothing is lost, and a kill costs at most the bodies that
were in flight. Each seed is one supervisor's life of five kills, and its record a file below
`build/faults/kills`: an interrupted run resumes where it stopped. Exits with 1 if a promise was
broken.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from faults.lives import play
from faults.moments import KILLS, MOMENTS, SIZES, Life, life
from faults.store import Served, served
from tests.support.isolation import isolate

Record = Mapping[str, Any]
"""What became of a life, as `faults.lives.play` has it."""


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m faults.kills", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first (%(default)s)")
    parser.add_argument("--n", type=int, default=10, help="kills (%(default)s)")
    parser.add_argument("--store", choices=("auto", "versitygw", "moto"), default="auto")
    parser.add_argument("--build", type=Path, default=Path("build/faults/kills"), help="where the records go")
    parser.add_argument("--prove", action="store_true", help="take the record of uploads out: is it noticed?")
    return parser.parse_args()


def records(
    first: int, kills: int, store: Served, build: Path, sabotage: str = "", sizes: Sequence[int] = SIZES
) -> Iterator[Record]:
    """Play seeds until there have been enough kills; those that have a record are not played again.

    Args:
        first: The first seed.
        kills: How many.
        store: Holds the checkpoints.
        build: Directory of the records.
        sabotage: See `play`.
        sizes: See `life`.
    """
    seed, left = first, kills
    while left > 0:
        planned = life(seed, min(left, KILLS), sizes)
        yield _played(planned, store, build, sabotage)
        seed, left = seed + 1, left - len(planned.kills)


def _played(planned: Life, store: Served, build: Path, sabotage: str) -> Record:
    name = "-".join(filter(None, (str(planned.seed), str(len(planned.kills)), sabotage)))
    file, folder = build / f"{name}.json", build / f"{name}.kept"
    if file.exists():
        return dict(json.loads(file.read_text()))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    record = play(planned, store, folder, sabotage)
    partial = file.with_suffix(".tmp")
    partial.write_text(json.dumps(record, indent=1))
    partial.replace(file)
    if not record["violations"]:
        shutil.rmtree(folder)
    return record


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _mib(count: int) -> str:
    return f"{count / (1 << 20):,.1f} MiB"


def say(record: Record) -> None:
    """One line for a life."""
    kinds = ", ".join(f"{kill['kind']} {kill['in flight']}/{kill['parts again']}" for kill in record["kills"])
    found = "; ".join(f"{one['figure']}: {one['what']}" for one in record["violations"]) or "ok"
    sent = f"{_mib(record['saved'])} saved, {_mib(record['sent'])} sent, {_mib(record['again'])} again"
    head = f"seed {record['seed']}: {len(record['kills'])} kills, {record['checkpoints']} checkpoints"
    _print(f"{head}, {record['seconds']:.0f} s; {sent}; in flight/again: {kinds}: {found}")


def report(done: Sequence[Record], store: Served, seconds: float) -> int:
    """Print the figures; 1 where a promise was broken, else 0."""
    kills = [kill for record in done for kill in record["kills"]]
    kinds = Counter(kill["kind"] for kill in kills)
    cut = sum(kill["in flight"] > 0 for kill in kills)
    most = max((kill["bytes again"] for kill in kills), default=0)
    parts = max((kill["parts again"] for kill in kills), default=0)
    _print(f"\n{len(kills)} kills of the worker; store: {store.name}; {seconds:.0f} s")
    for kind, count in kinds.most_common():
        _print(f"  {count:5}  {kind}: {MOMENTS[kind]}")
    _print(f"kills that cut off a body in transit: {cut}")
    _print(f"checkpoints: {_sum(done, 'checkpoints')}, committed and complete: {_sum(done, 'committed')}")
    _print(f"bytes lost: {_sum(done, 'lost'):,}")
    _print(f"bytes saved: {_mib(_sum(done, 'saved'))}; sent in total: {_mib(_sum(done, 'sent'))}")
    bound = max((record["allowed"] for record in done), default=0)
    _print(f"sent again: {_mib(_sum(done, 'again'))}; allowed: {_mib(bound * len(kills))}")
    _print(f"most after one kill: {_mib(most)}, {parts} parts; allowed: {_mib(bound)}")
    broken = [(record["seed"], violation) for record in done for violation in record["violations"]]
    for seed, violation in broken:
        _print(f"  seed {seed}: {violation['figure']}: {violation['what']}")
    return 1 if broken else 0


def _sum(done: Sequence[Record], figure: str) -> int:
    return sum(int(record[figure]) for record in done)


def prove(store: Served, build: Path) -> int:
    """Take out what a restarted worker knows of its uploads; 0 where it is noticed."""
    for record in records(1, 2 * KILLS, store, build, "no-ledger", SIZES[-1:]):
        found = [violation["what"] for violation in record["violations"] if violation["figure"] == "again"]
        if found:
            _print(f"without `what was sent is known after a restart`: again: {found[0]}")
            return 0
    _print("without `what was sent is known after a restart`: NOT NOTICED")
    return 1


def main() -> int:
    """The exit code: 0 where every promise was kept."""
    given = parse()
    isolate(os.environ)
    # An end by kill is as one by Ctrl-C: store and agent go with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began, done = time.monotonic(), []
    try:
        with served(given.store) as store:
            if given.prove:
                return prove(store, given.build)
            for record in records(given.seed, given.n, store, given.build):
                done.append(record)
                say(record)
            return report(done, store, time.monotonic() - began)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: the same command resumes from here\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
