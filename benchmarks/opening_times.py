"""How long a pod waits for its gate: the first one on a node, the second one, and one that shares."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median

from cache_scale import CacheScale, Found
from datasets import Data
from harness import LIMIT, Command, Contest, Finding, compare, interval, timed
from holders import holder_words, holders, running
from node_mounts import NodeMounts, node_mounts
from peers import downloading, fetching
from serving import BUCKET, Site, real_servers

OPENING = str(Path(__file__).with_name("opening.py"))
SECOND = 2.5
"""The ratio that is to be reached: the second pod waits at most 0.4 of the time of the first one, which is
started with the cache. What a pod without a cache takes is shown for the record."""
SHARED = 0.300
"""Seconds that are to be reached, whatever the size."""
FIRST, WAITED = "first pod, from the source", "first pod, while the holder fills"


def opening(site: Site, data: Data, target: Path, *options: str) -> Command:
    """An agent from its start to its open gate; what it has staged is compared, then removed."""
    words = _words(site, data, target, *options)
    command = downloading("podferry", words, site.environment, site.held / data.name, target)
    return replace(command, prints_seconds=True)


def _words(site: Site, data: Data, target: Path, *options: str) -> list[str]:
    uri = f"s3://{BUCKET}/{data.name}"
    return [sys.executable, OPENING, uri, str(target), f"--endpoint={site.endpoint}", *options]


def second(scale: CacheScale, sites: Mapping[str, Site], folder: Path) -> Found:
    """The second pod on a node, which copies from the holder, against the first one."""
    found, site = Found(), sites["latency"]
    for name in scale.opened:
        data = scale.sets[name]
        with holders(site.endpoint, f"s3://{BUCKET}/{name}", folder) as [holder]:
            holder.wait_until_complete()
            contest = Contest(
                f"{data.title}: second pod on a node; {site.title}",
                ours=opening(site, data, folder / "second", f"--cache={holder.url}"),
                peers={
                    FIRST: opening(site, data, folder / "first"),
                    WAITED: opening(site, data, folder / "waited", "--fill"),
                },
                limit=fetching(site, name, LIMIT, folder),
                least={WAITED: SECOND},
            )
            found += Found(tuple(compare(contest, scale.pairs, warm_up=scale.pairs > 1)))
    return found


@contextmanager
def sharing(mounts: NodeMounts, site: Site, data: Data) -> Iterator[Path]:
    """The view of a holder that shares a dataset, and has all of it."""
    root, view, port = mounts.stage / "set", mounts.view / "set", real_servers.free_port()
    words = holder_words(f"s3://{BUCKET}/{data.name}", root, port, site.endpoint, f"--shared={view}")
    with running(mounts.inside(words), root, port) as holder:
        holder.wait_until_complete()
        yield view


def shared(scale: CacheScale, sites: Mapping[str, Site], folder: Path) -> Found:
    """A pod that reads where the holder keeps the data: from its agent's start to the open gate."""
    found = []
    for name in dict.fromkeys(("least", scale.compared[-1])):
        data = scale.sets[name]
        what = f"{data.title}, shared: from the agent's start to the open gate"
        with node_mounts(folder / "node") as mounts:
            seconds = _shared_starts(mounts, sites["latency"], data, scale.starts) if mounts else []
        said = _starts(seconds) if seconds else "this user may not mount"
        reached = bool(seconds) and median(seconds) <= SHARED
        found.append(Finding(what, said, f"at most {SHARED * 1000:.0f} ms", reached))
    return Found((), tuple(found))


def _shared_starts(mounts: NodeMounts, site: Site, data: Data, count: int) -> list[float]:
    with sharing(mounts, site, data) as view:
        words = mounts.inside(_words(site, data, view / "files", f"--shared={view}"))
        return [timed(Command(words, prints_seconds=True)) for _ in range(count)]


def _starts(seconds: Sequence[float]) -> str:
    low, high = interval(seconds)
    return f"{median(seconds) * 1000:.0f} ms ({low * 1000:.0f} to {high * 1000:.0f}), {len(seconds)} starts"
