"""How fast each source is staged from a real server: podferry's entire command against the usual tool.

Both are also timed with one small file in each round: without that time, what is left is the throughput.
Rounds alternate, server, source and targets are in memory, and `cp` within the memory is the limit.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from datasets import MIB, Data, Kind
from harness import LIMIT, OURS, Command, Contest, Result, compare
from peers import OURS_PROGRAM, downloading
from report import report
from serving import in_memory, machine, with_load
from sources.row import Served, Source

from tests.support.isolation import isolate

SCHEMES = tuple(
    sorted(path.stem for path in Path(__file__).with_name("sources").glob("[!_]*.py") if path.stem != "row")
)


def small(files: int) -> Data:
    """The set of small files."""
    return Data("small", f"{files:,} x 30 KB", (Kind(files, 30_000, 30_000),))


FILES = 1000
"""Small files; with more of them, the start of the programs counts less."""
ONE = Data("one", "1 x 30 KB", (Kind(1, 30_000, 30_000),))
"""What a program takes for this is its start."""
LARGE = Data("large", "2 x 128 MiB", (Kind(2, 128 * MIB, 128 * MIB),))
SHORT = (
    small(50),
    Data("large", "2 x 4 MiB", (Kind(2, 4 * MIB, 4 * MIB),)),
)
"""Shows that it runs."""
PAIRS = 5
LEAST = 1.0
"""The ratio that is to be reached, of every row."""


@dataclass(frozen=True, slots=True)
class Row:
    """One scheme's server, and where its sets and the targets are."""

    scheme: str
    source: Source
    served: Served
    folder: Path
    files: Path

    def contest(self, data: Data) -> Contest:
        """Ours against the usual tool, for one set."""
        commands, peer = self._commands(data), self.source.peer
        return Contest(
            f"{data.title}; {self.scheme}",
            ours=commands[OURS],
            peers={peer: commands[peer]},
            limit=commands[LIMIT],
            least={peer: LEAST},
            starts=self._commands(ONE),
        )

    def _commands(self, data: Data) -> dict[str, Command]:
        held = self.files / data.name
        ours, theirs, limit = (self.folder / name for name in ("ours", "theirs", "limit"))
        get = [
            OURS_PROGRAM,
            "dataset",
            "get",
            *self.served.options,
            f"{self.served.uri}/{data.name}",
            str(ours),
        ]
        words = {
            OURS: (get, ours),
            self.source.peer: (self.served.peer(data.name, theirs), theirs),
            LIMIT: (["cp", "-r", str(held), str(limit)], limit),
        }
        return {
            name: downloading(name, given, self.served.environment, held, target)
            for name, (given, target) in words.items()
        }


def rows(
    scheme: str, sets: Sequence[Data], pairs: int, folder: Path, *, warm_up: bool
) -> tuple[str, list[Result]]:
    """The server's title, and the results of a scheme."""
    source: Source = import_module(f"sources.{scheme}").SOURCE
    results: list[Result] = []
    files, own = folder / scheme / "files", folder / scheme / "server"
    own.mkdir(parents=True)
    for data in (*sets, ONE):
        data.write(files)
    with source.serve(files, own) as served:
        row = Row(scheme, source, served, folder, files)
        for data in sets:
            results += compare(row.contest(data), pairs, warm_up=warm_up)
    return served.server, results


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The command line; by default everything."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("schemes", nargs="*", help=f"some of {', '.join(SCHEMES)} (default: all)")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="rounds that count (default: %(default)s)")
    parser.add_argument("--files", type=int, default=FILES, help="small files (default: %(default)s)")
    parser.add_argument("--short", action="store_true", help="little data, one round: shows that it runs")
    given = parser.parse_args(words)
    if unknown := set(given.schemes) - set(SCHEMES):
        parser.error(f"no {', '.join(sorted(unknown))}; there are {', '.join(SCHEMES)}")
    return given


def main(words: Sequence[str]) -> int:
    given = parse(words)
    isolate(os.environ)
    sets, pairs = (SHORT, 1) if given.short else ((small(given.files), LARGE), given.pairs)
    results: list[Result] = []
    servers: dict[str, str] = {}
    with in_memory() as folder:
        for scheme in given.schemes or SCHEMES:
            servers[scheme], found = rows(scheme, sets, pairs, folder, warm_up=not given.short)
            results += found
    about = with_load(machine(podferry=version("podferry"), **servers))
    named = "-".join(["sources", *given.schemes, *(["short"] if given.short else [])])
    print(report(named, about, results))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
