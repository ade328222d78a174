"""The node cache: second pods, shared data, warm epochs, FUSE mounts, memory, and several holders.

node_cache.py [second] [shared] [warm] [mounts] [memory] [peers] [flight] [--pairs N] [--short]
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path

import cached_mounts
import cached_reads
import filling
import opening_times
from cache_scale import FULL, SHORT, CacheScale, Found
from nginx import nginx, nginx_version
from report import report
from serving import BUCKET, KEYS, REAL, Site, in_memory, measured_on

from tests.support.isolation import isolate

Part = Callable[[CacheScale, Mapping[str, Site], Path], Found]
PARTS: Mapping[str, Part] = {
    "second": opening_times.second,
    "shared": opening_times.shared,
    "warm": cached_reads.warm,
    "mounts": cached_mounts.mounts,
    "memory": filling.memory,
    "peers": filling.peers,
    "flight": filling.flight,
}


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The command line; by default everything."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--pairs", type=int, help="rounds that count, of every contest")
    parser.add_argument("--short", action="store_true", help="little data, one round: shows that it runs")
    given = parser.parse_args(words)
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"no {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return given


def main(words: Sequence[str]) -> int:
    given = parse(words)
    isolate(os.environ)
    os.environ |= KEYS
    scale = (SHORT if given.short else FULL).with_pairs(given.pairs)
    chosen = given.parts or list(PARTS)
    found = Found()
    with in_memory() as folder, ExitStack() as stack:
        for data in scale.sets.values():
            data.write(folder / "root" / BUCKET)
        sites = stack.enter_context(nginx(folder / "nginx", folder / "root"))
        for name in chosen:
            found += PARTS[name](scale, sites, folder)
    about = measured_on(nginx_version(), REAL, podferry=version("podferry"))
    named = "-".join(["cache", *given.parts, *(["short"] if given.short else [])])
    print(report(named, about, found.results, found.findings))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
