"""What a trainer waits for: epochs over images in a store, by every usual way, staging included.

One chart: `build/bench/epoch.html` and `.png`. Also, in pairs: a cold epoch of reading alone against FUSE
mounts, and a warm one against plain files in memory.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import chart
import images
from agents import staged
from catching import break_even, ends_of
from harness import OURS, Command, Contest, Result, compare
from mounts import PROGRAMS, Mount, impossible
from nginx import nginx, nginx_version
from reader import SIDE
from report import RESULTS, report
from serving import BUCKET, KEYS, Site, in_memory, measured_on
from ways import LOCAL, PREFIX, READER, SECOND, Training, ferried, trained, uri, ways

from tests.support.isolation import isolate

PARTS = ("train", "cold", "warm")
SITES = ("plain", "latency")
COLD, WARM = 5.0, 0.95
"""The ratios that are to be reached: of a cold epoch against FUSE, of a warm one against plain files."""
NOTE = f"""Staging is a part of the first epoch. Break-even: the first epoch after which {OURS} is not behind;
epochs that were not measured count as the last one that was. A second pod finds a holder on its node that has
everything."""
WORKERS = len(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True)
class Scale:
    """How much.

    Attributes:
        training: What the trainer does.
        cold, warm: Rounds that count.
    """

    training: Training
    cold: int
    warm: int


FULL = Scale(Training(20_000, 3, 64, 0.05, WORKERS), 5, 20)
SHORT = Scale(Training(200, 3, 16, 0.01, WORKERS), 1, 1)


def train(scale: Scale, site: Site, folder: Path, name: str) -> dict[str, list[dict[str, str]]]:
    """Every way once: the chart, and its table by its title."""
    barred = impossible()
    seen = {}
    for way in ways(not barred):
        seen[way] = trained(way, site, scale.training, folder / "way")
        shown = ", ".join(f"{epoch['seconds']:.1f}" for epoch in seen[way])
        print(f"{way}: first batch after {seen[way][0]['first']:.1f} s, epochs {shown} s", flush=True)
    rows = [_row(way, epochs, seen[OURS], scale.training.images) for way, epochs in seen.items()]
    title = (
        f"{scale.training.images:,} JPEGs of {SIDE} x {SIDE}, steps of "
        f"{scale.training.step * 1000:.0f} ms for {scale.training.batch}; {site.title}"
    )
    notes = [NOTE, *([f"No FUSE mounts: {barred}"] if barred else [])]
    RESULTS.mkdir(parents=True, exist_ok=True)
    chart.write(RESULTS / f"{name}.html", title, chart.draw(title, seen, OURS), rows, notes)
    return {"\n".join([title, *notes[1:]]): rows}


def _row(
    way: str, epochs: Sequence[Mapping[str, float]], ours: Sequence[Mapping[str, float]], count: int
) -> dict[str, str]:
    even = break_even(ends_of(ours), ends_of(epochs))
    return {
        "way": way,
        "first batch": f"{epochs[0]['first']:.1f} s",
        "images/s": ", ".join(f"{count / epoch['seconds']:,.0f}" for epoch in epochs),
        "step waits": ", ".join(f"{epoch['waited'] / epoch['seconds']:.0%}" for epoch in epochs),
        "all epochs": f"{epochs[-1]['ended']:.1f} s",
        "break-even epoch": "-" if way in {OURS, SECOND, LOCAL} else str(even or "never"),
    }


def cold(scale: Scale, site: Site, folder: Path) -> list[Result]:
    """Every file read once without decoding, staging included, against mounts that have just been made."""
    if barred := impossible():
        print(f"no cold epoch against FUSE: {barred}")
        return []
    stage, local = folder / "stage", str(site.held / PREFIX)

    def clear() -> None:
        for path in (stage, stage.with_name("stage.podferry")):
            shutil.rmtree(path, ignore_errors=True)

    def through(name: str) -> Command:
        mount = Mount(name, site, folder / "mount")
        return Command(_read(str(mount.place / PREFIX)), site.environment, mount.begin, mount.end)

    contest = Contest(
        f"{scale.training.images:,} JPEGs read once, cold; {site.title}",
        ours=Command(ferried(site, stage, _read(str(stage))), site.environment, clear, clear),
        peers={name: through(name) for name in PROGRAMS},
        limit=Command(_read(local)),
        least=dict.fromkeys(PROGRAMS, COLD),
    )
    return compare(contest, scale.cold, warm_up=scale.cold > 1)


def warm(scale: Scale, site: Site, folder: Path) -> list[Result]:
    """Every file read again while podferry's agent runs, against the same files copied by `cp`."""
    plain, stage = folder / "plain", folder / "stage"
    shutil.copytree(site.held / PREFIX, plain)
    with staged(uri(), stage, site.endpoint):
        alone = Command(_read(str(plain)), prints_seconds=True)
        contest = Contest(
            f"{scale.training.images:,} JPEGs read once more",
            ours=Command(_read(str(stage)), prints_seconds=True),
            peers={"plain tmpfs": alone},
            limit=alone,
            least={"plain tmpfs": WARM},
            noise=True,
        )
        return compare(contest, scale.warm, warm_up=scale.warm > 1)


def _read(source: str) -> list[str]:
    return [sys.executable, READER, "read", source, "--workers", str(WORKERS)]


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The command line; by default everything, from plain nginx."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--site", choices=SITES, default=SITES[0], help="(default: %(default)s)")
    parser.add_argument("--pairs", type=int, help="rounds that count, of cold and warm")
    parser.add_argument("--short", action="store_true", help="few images, one round: shows that it runs")
    given = parser.parse_args(words)
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"no {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return given


def main(words: Sequence[str]) -> int:
    given = parse(words)
    isolate(os.environ)
    os.environ |= KEYS
    scale, chosen = SHORT if given.short else FULL, given.parts or PARTS
    if given.pairs:
        scale = replace(scale, cold=given.pairs, warm=given.pairs)
    usual = [] if given.site == SITES[0] else [given.site]
    name = "-".join(["epoch", *given.parts, *usual, *(["short"] if given.short else [])])
    about = measured_on(
        nginx_version(), **{package: version(package) for package in ("podferry", "obstore", "s3fs", "boto3")}
    )
    epochs: dict[str, list[dict[str, str]]] = {}
    results: list[Result] = []
    with in_memory() as folder:
        images.make(folder / "root" / BUCKET / PREFIX, scale.training.images, WORKERS)
        with nginx(folder / "nginx", folder / "root") as sites:
            site = sites[given.site]
            if "train" in chosen:
                epochs = train(scale, site, folder, name)
            for part in (cold, warm):
                if part.__name__ in chosen:
                    results += part(scale, site, folder)
    print(report(name, about, results, more=epochs))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
