"""The node cache against FUSE mounts of the same bucket on a real S3 server."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from cache_scale import CacheScale, Found
from cached_reads import WORKERS, pod_from, reading
from datasets import Data
from harness import OURS, Command, Contest, Finding, Result, compare, interval
from holders import holders
from mounts import PROGRAMS, Mount, impossible, mounted
from opening_times import opening
from serving import BUCKET, KEYS, REAL, Site, bucket, s5cmd

LATENCIES = str(Path(__file__).with_name("latencies.py"))
LEAST = 2.0
"""The ratio that is to be reached."""
Percentiles = Mapping[str, Mapping[str, float]]
"""Seconds, by pass (`first`, `again`) and percentile (`p50`, `p99`)."""


@contextmanager
def s3_site(sets: Sequence[Data], held: Path, folder: Path) -> Iterator[Site]:
    """versitygw, with the files of some sets below `held` uploaded."""
    with bucket(folder) as (endpoint, kept):
        for data in sets:
            command = s5cmd(endpoint, "cp", f"{held / data.name}/", f"s3://{BUCKET}/{data.name}/")
            subprocess.run(command, env=KEYS, check=True, stdout=subprocess.DEVNULL)
        yield Site("s3", REAL, endpoint, kept, KEYS)


def mounts(scale: CacheScale, sites: Mapping[str, Site], folder: Path) -> Found:
    """Everything cold, and each file's opening and reading alone."""
    if barred := impossible():
        wanted = f"at least {LEAST:.0f} of {' and '.join(PROGRAMS)}"
        return Found((), (Finding("cold, against FUSE mounts", barred, wanted, reached=False),))
    sets = [scale.sets[name] for name in scale.compared]
    with s3_site(sets, sites["plain"].held, folder / "versitygw") as site:
        # Many small files would take a mount many minutes at a distance.
        contests = [*((site, data) for data in sets), (sites["latency"], sets[-1])]
        results = [row for place, data in contests for row in _cold(scale, place, data, folder)]
        return Found(tuple(results), tuple(_latencies(scale, site, sets[0], folder)))


def _cold(scale: CacheScale, site: Site, data: Data, folder: Path) -> list[Result]:
    """Nobody has a byte: a holder starts with the pod, fills, the pod copies, and reads everything once."""

    def through(name: str) -> Command:
        mount = Mount(name, site, folder / "mount")
        return Command(
            reading(mount.place / data.name), site.environment, mount.begin, mount.end, prints_seconds=True
        )

    contest = Contest(
        f"{data.title}: holder, pod and every file read once, cold; {site.title}",
        ours=opening(site, data, folder / "cold", "--fill", f"--read={WORKERS}"),
        peers={name: through(name) for name in PROGRAMS},
        limit=Command(reading(site.held / data.name), prints_seconds=True),
        least=dict.fromkeys(PROGRAMS, LEAST),
    )
    return compare(contest, scale.slow_pairs, warm_up=False)


def _latencies(scale: CacheScale, site: Site, data: Data, folder: Path) -> Iterator[Finding]:
    """Opening and reading a file: in a pod from the cache, and through mounts that are new each time."""
    with (
        holders(site.endpoint, f"s3://{BUCKET}/{data.name}", folder) as [holder],
        pod_from(holder, site, data, folder) as stage,
    ):
        rounds = [dict(_round(stage, scale, site, data, folder)) for _ in range(scale.slow_pairs)]
    for peer in PROGRAMS:
        for share in ("p50", "p99"):
            yield _finding(
                f"{data.title}: open and read a file, {share}, against {peer}", peer, share, rounds
            )


def _round(
    stage: Path, scale: CacheScale, site: Site, data: Data, folder: Path
) -> Iterator[tuple[str, Percentiles]]:
    contestants = [OURS, *PROGRAMS]
    random.shuffle(contestants)
    for name in contestants:
        if name == OURS:
            yield name, _passes(stage, scale.sample)
        else:
            with mounted(name, site, folder / "mount") as place:
                yield name, _passes(place / data.name, scale.sample)


def _passes(place: Path, count: int) -> Percentiles:
    words = [sys.executable, LATENCIES, str(place), str(count)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found: Percentiles = json.loads(done.stdout)
    return found


def _finding(what: str, peer: str, share: str, rounds: Sequence[Mapping[str, Percentiles]]) -> Finding:
    def middle(name: str, when: str) -> float:
        return median(one[name][when][share] for one in rounds)

    ratios = [one[peer]["first"][share] / one[OURS]["first"][share] for one in rounds]
    low, high = interval(ratios)
    ours, first, again = middle(OURS, "first"), middle(peer, "first"), middle(peer, "again")
    found = (
        f"{_ms(ours)}, {_ms(first)}, again {_ms(again)}: {median(ratios):,.1f} ({low:,.1f} to {high:,.1f}), "
        f"again {again / ours:,.1f}; {len(ratios)} rounds"
    )
    return Finding(what, found, f"at least {LEAST:.0f} the first time", median(ratios) >= LEAST)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.3f} ms"
