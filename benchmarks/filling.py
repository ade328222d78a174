"""What holders cost while they fill: memory, time with several of them, and bytes of the source."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from cache_scale import CacheScale, Found
from datasets import Data
from harness import LIMIT, Command, Contest, Finding, compare
from holders import EVERY, holders
from memory import resident, sum_of
from nginx import sent_of_objects
from peers import OURS_PROGRAM, fetching
from serving import BUCKET, MIB, Site

from podferry.contract.dataset_volume import ListedSize
from podferry.contract.memory_sum import memory_sum
from podferry.contract.spec import DatasetSpec, FerrySpec
from podferry.contract.tmpfs_cost import KERNEL_BYTES_PER_FILE, allocated_bytes

HOLDERS = str(Path(__file__).with_name("holders.py"))
PEERS = 1 / 1.3
"""The ratio that is to be reached: two holders take at most 1.3 of one holder's time."""
OFF = 0.05


def memory(scale: CacheScale, sites: Mapping[str, Site], folder: Path) -> Found:
    """A holder's first fill of many small files, against what the sum says is in use, and its limit."""
    data, site = scale.sets["tiny"], sites["plain"]
    uri = f"s3://{BUCKET}/{data.name}"
    with holders(site.endpoint, uri, folder) as [holder]:
        highest = 0
        while not holder.is_complete():
            highest = max(highest, resident(holder.process.pid))
            time.sleep(EVERY)
        holder.wait_until_complete()
        files = sum_of(holder.root)
        sizes = [path.stat().st_size for path in holder.root.rglob("*") if path.is_file()]
    listed = ListedSize(sum(sizes), data.count, allocated_bytes(sizes))
    wanted = memory_sum(FerrySpec(datasets=(DatasetSpec(uri),)), {"": listed})
    used, expected = highest + files, wanted.in_use or 0
    off = used / expected - 1
    found = (
        f"{used / MIB:.0f} MiB: processes {highest / MIB:.0f}, files {files / MIB:.0f}; "
        f"the sum says {expected / MIB:.0f} MiB: {off:+.1%}"
    )
    what = f"{data.title}: a holder's most memory, first fill"
    most = highest + wanted.data_volume + data.count * KERNEL_BYTES_PER_FILE
    full = f"{most / MIB:.0f} MiB of {wanted.sidecar / MIB:.0f}"
    return Found(
        (),
        (
            Finding(what, found, f"within {OFF:.0%} of the sum", abs(off) <= OFF),
            Finding(f"{what}, if its volume were full", full, "at most its limit", most <= wanted.sidecar),
        ),
    )


def peers(scale: CacheScale, sites: Mapping[str, Site], folder: Path) -> Found:
    """Two holders that are peers, each on a core of its own, against one holder on a core."""
    found, site = Found(), sites["latency"]
    for name in scale.compared:
        data = scale.sets[name]

        def filled(count: int, data: Data = data) -> Command:
            uri, place = f"s3://{BUCKET}/{data.name}", folder / "filled"
            words = [sys.executable, HOLDERS, uri, str(place), site.endpoint, str(count)]
            return Command(words, site.environment, prints_seconds=True)

        contest = Contest(
            f"{data.title}: two holders complete; {site.title}",
            ours=filled(2),
            peers={"one holder": filled(1)},
            limit=fetching(site, name, LIMIT, folder),
            least={"one holder": PEERS},
        )
        found += Found(tuple(compare(contest, scale.pairs, warm_up=scale.pairs > 1)))
    return found


def flight(scale: CacheScale, sites: Mapping[str, Site], folder: Path) -> Found:
    """Eight readers that start with the holders, at once: bytes that the source has sent."""
    data, site = scale.sets["flight"], sites["counted"]
    whole = sum(path.stat().st_size for path in (site.held / data.name).rglob("*") if path.is_file())
    found = []
    for count in (1, 2):
        before = sent_of_objects(folder / "nginx")
        _read_at_once(site, data, folder / "flight", count, scale.readers)
        share = (sent_of_objects(folder / "nginx") - before) / whole
        over = f"{count} holder{'s' * (count > 1)}"
        what = f"{data.title}: bytes of the source, {scale.readers} readers at once over {over}"
        found.append(Finding(what, f"{share:.3f} of the dataset", "1.000", round(share, 3) == 1))
    return Found((), tuple(found))


def _read_at_once(site: Site, data: Data, folder: Path, count: int, readers: int) -> None:
    """Start holders and readers together, and wait for all.

    Raises:
        RuntimeError: A reader has other files than the source.
    """
    folder.mkdir()
    uri = f"s3://{BUCKET}/{data.name}"
    with holders(site.endpoint, uri, folder, count) as found:
        started = {}
        for number in range(readers):
            options = ("--endpoint", site.endpoint, "--cache", found[number % count].url)
            words = [OURS_PROGRAM, "dataset", "get", *options, uri, str(folder / f"reader-{number}")]
            started[number] = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for number, process in started.items():
            same = ["diff", "-rq", str(site.held / data.name), str(folder / f"reader-{number}")]
            if process.wait() or subprocess.run(same, check=False).returncode:
                raise RuntimeError(f"reader {number} does not have the dataset")
    shutil.rmtree(folder)
