"""How fast checkpoints become durable, what the trainer feels of it, and what a pod's end leaves behind.

Server, checkpoints and targets are in memory, so that the disk does not matter.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from agents import GENTLE, Agent, agent, on_cores
from cadence import Cadence, Costs
from contention import Contention, Overlaps, stepping, trainers_core, writing
from drains import Backlog, drain
from harness import Finding, Result, compare
from report import report
from serving import KEYS, MIB, bucket, in_memory, measured_on
from uploads import Load, memory, uploading


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything.

    Attributes:
        loads: What is uploaded.
        peaks: What the worker's memory is looked at with, smallest first.
        pairs: Rounds of uploads that count.
        contention: The load next to a trainer.
        contention_pairs: Rounds of that.
        cadence: What a trainer saves that is also looked at for the agent's CPU time; as many rounds.
        backlog: What is there at the end.
        graces: Seconds that the end may take: enough, and too few.
    """

    loads: tuple[Load, ...]
    peaks: tuple[Load, ...]
    pairs: int
    contention: Contention
    contention_pairs: int
    cadence: Cadence
    backlog: Backlog
    graces: tuple[float, float]


FULL = Sizes(
    loads=(
        Load("large", "1 x 1 GiB", 1, 1024 * MIB),
        Load("small", "200 x 5 MiB", 200, 5 * MIB),
    ),
    peaks=(Load("128", "128 MiB", 1, 128 * MIB), Load("1024", "1 GiB", 1, 1024 * MIB)),
    pairs=7,
    contention=Contention(1024 * MIB, 100 * MIB, 50),
    contention_pairs=20,
    cadence=Cadence(256 * MIB, 2, 15.0),
    backlog=Backlog(8, 256 * MIB, 200 * MIB),
    graces=(60.0, 6.0),
)
SHORT = Sizes(
    loads=(
        Load("large", "1 x 64 MiB", 1, 64 * MIB),
        Load("small", "8 x 5 MiB", 8, 5 * MIB),
    ),
    peaks=(Load("64", "64 MiB", 1, 64 * MIB), Load("96", "96 MiB", 1, 96 * MIB)),
    pairs=2,
    contention=Contention(64 * MIB, 16 * MIB, 5),
    contention_pairs=2,
    cadence=Cadence(16 * MIB, 2, 1.0),
    backlog=Backlog(4, 16 * MIB, 8 * MIB),
    graces=(60.0, 4.0),
)


def uploads(sizes: Sizes, folder: Path) -> tuple[list[Result], list[Finding]]:
    """As fast as it goes."""
    with bucket(folder / "server") as server:
        found = [memory(sizes.peaks, folder, server)]
        with agent(folder / "podferry", server) as through:
            contests = [uploading(load, folder, server, through) for load in sizes.loads]
            return [result for one in contests for result in compare(one, sizes.pairs)], found


@contextmanager
def sending_agent(how: Contention, folder: Path) -> Iterator[Agent]:
    """An agent that sends no faster than a network link, to a server on the other cores."""
    with ExitStack() as stack:
        with on_cores(os.sched_getaffinity(0) - {trainers_core()}):
            server = stack.enter_context(bucket(folder / "server"))
        yield stack.enter_context(agent(folder / "podferry", server, limit=how.rate, nice=GENTLE))


def writes(sizes: Sizes, folder: Path) -> tuple[list[Result], list[Finding]]:
    """What a trainer's write feels."""
    with sending_agent(sizes.contention, folder) as sending:
        overlaps = Overlaps(sending, "the next write")
        contest = writing(sizes.contention, folder, sending, overlaps)
        return compare(contest, sizes.contention_pairs), [overlaps.finding()]


def steps(sizes: Sizes, folder: Path) -> tuple[list[Result], list[Finding]]:
    """What a trainer's step feels."""
    with sending_agent(sizes.contention, folder) as sending:
        overlaps = Overlaps(sending, "the steps")
        contest = stepping(sizes.contention, sending, overlaps)
        return compare(contest, sizes.contention_pairs), [overlaps.finding()]


def costs(sizes: Sizes, folder: Path) -> tuple[list[Result], list[Finding]]:
    """What it costs that a trainer saves all the time."""
    with sending_agent(sizes.contention, folder) as sending:
        cost = Costs(sizes.cadence, folder, sending)
        return compare(cost.contest(), sizes.contention_pairs), [cost.finding()]


def ends(sizes: Sizes, folder: Path) -> tuple[list[Result], list[Finding]]:
    """What the end of a pod leaves behind."""
    with bucket(folder / "server") as server:
        return [], [drain(sizes.backlog, folder, server, grace) for grace in sizes.graces]


CASES = {"uploads": uploads, "writes": writes, "steps": steps, "costs": costs, "ends": ends}


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("cases", nargs="*", help=f"some of {', '.join(CASES)} (default: all)")
    parser.add_argument("--short", action="store_true", help="little data, two rounds: shows that it runs")
    parser.add_argument("--pairs", type=int, help="rounds that count, instead of each case's own number")
    options = parser.parse_args(words)
    os.environ |= KEYS
    chosen = options.cases or list(CASES)
    sizes = SHORT if options.short else FULL
    if options.pairs:
        sizes = replace(sizes, pairs=options.pairs, contention_pairs=options.pairs)
    about = measured_on(**{name: version(name) for name in ("podferry", "obstore")})
    results: list[Result] = []
    findings: list[Finding] = []
    for name in chosen:
        with in_memory() as folder:
            times, found = CASES[name](sizes, folder)
        results += times
        findings += found
    named = "-".join(["checkpoint", *options.cases, *(["short"] if options.short else [])])
    print(report(named, about, results, findings))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
