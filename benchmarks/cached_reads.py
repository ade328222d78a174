"""How fast files are read that came through the node cache: against plain files in memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from cache_scale import CacheScale, Found
from datasets import Data
from harness import Command, Contest, Finding, compare
from holders import Holder, holders
from node_mounts import node_mounts
from opening import opened
from opening_times import sharing
from serving import BUCKET, Site

READER = str(Path(__file__).with_name("reader.py"))
WORKERS = len(os.sched_getaffinity(0))
WARM = 0.95
"""The ratio that is to be reached."""
PLAIN = "plain tmpfs"


def warm(scale: CacheScale, sites: Mapping[str, Site], folder: Path) -> Found:
    """Every file read again, of a stage that was copied from a holder and of one that is shared."""
    data, site, found = scale.sets["small"], sites["plain"], Found()
    with holders(site.endpoint, f"s3://{BUCKET}/{data.name}", folder) as [holder]:
        holder.wait_until_complete()
        with pod_from(holder, site, data, folder) as stage, copied(site.held / data.name, folder) as plain:
            contest = _against_plain(f"{data.title}, copied", reading(stage), reading(plain))
            found += Found(tuple(compare(contest, scale.warm_pairs, warm_up=scale.warm_pairs > 1)))
    with node_mounts(folder / "node") as mounts:
        if mounts is None:
            missing = Finding(f"{data.title}, shared", "this user may not mount", f"{WARM} of {PLAIN}", False)
            return found + Found((), (missing,))
        with sharing(mounts, site, data) as view, copied(site.held / data.name, folder) as plain:
            ours, theirs = (mounts.inside(reading(one)) for one in (view / "files", plain))
            contest = _against_plain(f"{data.title}, shared", ours, theirs)
            found += Found(tuple(compare(contest, scale.warm_pairs, warm_up=scale.warm_pairs > 1)))
    return found


@contextmanager
def copied(held: Path, folder: Path) -> Iterator[Path]:
    """Plain files, made just now: how fast files are read depends on which pages were free."""
    plain = folder / "plain"
    subprocess.run(["cp", "-r", str(held), str(plain)], check=True)
    yield plain
    shutil.rmtree(plain)


@contextmanager
def pod_from(holder: Holder, site: Site, data: Data, folder: Path) -> Iterator[Path]:
    """Where a pod has a dataset that it has copied from a holder, while its agent runs."""
    place = folder / "pod"
    place.mkdir()
    uri, stage = f"s3://{BUCKET}/{data.name}", place / "stage"
    with opened(uri, stage, site.endpoint, place, cache=holder.url):
        yield stage
    shutil.rmtree(place)


def _against_plain(case: str, ours: Sequence[str], theirs: Sequence[str]) -> Contest:
    alone = Command(theirs, prints_seconds=True)
    return Contest(
        f"{case}: every file read once more",
        ours=Command(ours, prints_seconds=True),
        peers={PLAIN: alone},
        limit=alone,
        least={PLAIN: WARM},
        noise=True,
    )


def reading(folder: Path) -> list[str]:
    """A command that reads every file, and prints the seconds."""
    return [sys.executable, READER, "read", str(folder), f"--workers={WORKERS}"]
