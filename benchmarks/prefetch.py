"""How fast a dataset is staged: podferry's entire command against s5cmd, s3fs, boto3 and, as the limit, `cp`.

Server, source and targets are in memory, so that the disk does not matter. Everything that a user waits for
counts: the start of the program, the listing, the checks, the copy.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from itertools import product
from pathlib import Path

from datasets import FULL, SHORT, Data
from harness import LIMIT, Result, compare
from nginx import nginx, nginx_version
from peers import EVERY, QUICK, SLOW, contest
from report import report
from serving import BUCKET, KEYS, Site, bucket, in_memory, measured_on, s5cmd
from serving import REAL as VERSITYGW

from tests.support.isolation import isolate

NGINX = ("plain", "tls", "latency")
REAL = "s3"
"""A real S3 server, for the record."""
SITES = (*NGINX, REAL)
SETS = ("small", "large", "mixed", "tiny")
LEAST: Mapping[tuple[str, str], Mapping[str, float]] = {
    ("plain", "small"): {"s5cmd": 3.0, LIMIT: 0.5, "s3fs": 15.0},
    ("plain", "large"): {"s5cmd": 1.3, "s3fs": 3.0},
    ("tls", "small"): {"s5cmd": 2.0},
    ("tls", "large"): {"s5cmd": 0.9},
    ("latency", "small"): {"s5cmd": 2.0},
    ("latency", "large"): {"s5cmd": 1.2},
}
"""The ratios that are to be reached, by site and set."""


@dataclass(frozen=True, slots=True)
class Step:
    """Some peers in one contest.

    Attributes:
        site, set: Their names.
        peers: Against whom.
        pairs: Rounds that count.
        warm_up: Whether a round comes first that does not.
    """

    site: str
    set: str
    peers: tuple[str, ...]
    pairs: int
    warm_up: bool = True


PAIRS, SLOW_PAIRS = 7, 2
SMALL_FORM = (
    *(Step("plain", name, QUICK, 1, warm_up=False) for name in SETS),
    Step("tls", "mixed", EVERY, 1, warm_up=False),
    Step("latency", "mixed", QUICK, 1, warm_up=False),
    Step(REAL, "mixed", QUICK, 1, warm_up=False),
)
"""Every server, every set and every peer at least once."""


def steps(given: argparse.Namespace) -> list[Step]:
    """What to run. Slow peers take minutes: they have fewer rounds, and 100,000 files from one site alone."""
    if given.short and not (given.sites or given.sets):
        return list(SMALL_FORM)
    found = []
    for site, name in product(given.sites or SITES, given.sets or SETS):
        quick = tuple(peer for peer in QUICK if peer in given.peers)
        slow = tuple(peer for peer in SLOW if peer in given.peers)
        asked = bool(given.sites and given.sets)
        if quick:
            found.append(Step(site, name, quick, given.pairs or PAIRS))
        if slow and (asked or name != "tiny" or site == "plain"):
            found.append(Step(site, name, slow, given.pairs or SLOW_PAIRS, warm_up=False))
    return found


@contextmanager
def served(sites: Iterable[str], sets: Iterable[Data], folder: Path) -> Iterator[dict[str, Site]]:
    """The sites that are asked for, each with all the sets."""
    held = folder / "root" / BUCKET
    for data in sets:
        data.write(held)
    with ExitStack() as stack:
        found = {}
        if set(sites) & set(NGINX):
            found |= stack.enter_context(nginx(folder / "nginx", held.parent))
        if REAL in sites:
            found[REAL] = stack.enter_context(real(folder / "versitygw", held))
        yield {name: found[name] for name in sites}


@contextmanager
def real(folder: Path, source: Path) -> Iterator[Site]:
    """versitygw, with the files of `source` uploaded."""
    with bucket(folder) as (endpoint, held):
        command = s5cmd(endpoint, "cp", f"{source}/", f"s3://{BUCKET}/")
        subprocess.run(command, env=KEYS, check=True, stdout=subprocess.DEVNULL)
        yield Site(REAL, "versitygw", endpoint, held, KEYS)


def fetched(step: Step, site: Site, data: Data, folder: Path, least: Mapping[str, float]) -> list[Result]:
    """The rows of a step. The limit has one with the quick peers, which have more rounds."""
    wanted = {peer: ratio for peer, ratio in least.items() if peer in step.peers or step.peers == QUICK}
    found = contest(site, (data.name, data.title), step.peers, folder, wanted)
    return compare(found, step.pairs, warm_up=step.warm_up)


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The command line; by default everything."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("sites", nargs="*", help=f"some of {', '.join(SITES)} (default: all)")
    parser.add_argument("--sets", default="", help=f"some of {','.join(SETS)} (default: all)")
    parser.add_argument("--peers", default=",".join(EVERY), help="some of %(default)s (default: all)")
    parser.add_argument("--pairs", type=int, help="rounds that count, of every peer")
    parser.add_argument("--short", action="store_true", help="little data, one round: shows that it runs")
    given = parser.parse_args(words)
    given.sets, given.peers = (list(filter(None, text.split(","))) for text in (given.sets, given.peers))
    for name, known in (("sites", SITES), ("sets", SETS), ("peers", EVERY)):
        if unknown := set(getattr(given, name)) - set(known):
            parser.error(f"{name}: no {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return given


def main(words: Sequence[str]) -> int:
    given = parse(words)
    isolate(os.environ)
    planned = steps(given)
    sites = dict.fromkeys(step.site for step in planned)
    sets = {
        name: (SHORT if given.short else FULL)[name] for name in dict.fromkeys(step.set for step in planned)
    }
    results: list[Result] = []
    with in_memory() as folder, served(sites, sets.values(), folder) as places:
        for step in planned:
            least = {} if given.short else LEAST.get((step.site, step.set), {})
            results += fetched(step, places[step.site], sets[step.set], folder, least)
    servers = [nginx_version()] * bool({*sites} & {*NGINX}) + [VERSITYGW] * (REAL in sites)
    about = measured_on(
        *servers, **{name: version(name) for name in ("podferry", "obstore", "s3fs", "boto3")}
    )
    named = "-".join(["prefetch", *given.sites, *given.sets, *(["short"] if given.short else [])])
    print(report(named, about, results))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
