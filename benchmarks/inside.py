"""What a prefetch costs apart from time: rates, memory, checksums, a warm start, idling, a slow listing."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from statistics import median

import boto3
from agents import staged
from datasets import FULL, SHORT, Data
from harness import LIMIT, OURS, Command, Contest, Finding, Result, compare, interval, timed
from listed import listed
from memory import family, group, peak, resident, run_in, sum_of
from nginx import nginx, nginx_version
from peers import OURS_PROGRAM, commands, fetching
from report import report
from serving import BUCKET, KEYS, MIB, REAL, Site, bucket, in_memory, measured_on

from podferry.sidecar.launch.local_agent import LocalAgent
from tests.support.isolation import isolate

VERIFYING = str(Path(__file__).with_name("verifying.py"))
RATE, GROWTH, OFF, VERIFIED = 0.9, 40 * MIB, 0.1, 0.9
GATE, IDLE = 0.150, 80 * MIB
"""What is to be reached: shares, bytes, seconds."""
REST = 3.0
"""Seconds after which an agent is idle: what the prefetch held is given back by then."""
CHECKSUM = "CRC64NVME"


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is looked at.

    Attributes:
        sets: By name.
        pairs: Rounds that count.
    """

    sets: dict[str, Data]
    pairs: int


def growing(scale: Scale, site: Site, folder: Path) -> list[Finding]:
    """Ten times as many files of the same size: objects per second, and the memory of all processes."""
    few, tiny = (scale.sets[name] for name in ("few", "tiny"))
    both = {data.name: fetching(site, data.name, OURS, folder) for data in (few, tiny)}
    rates: dict[str, list[float]] = {data.name: [] for data in (few, tiny)}
    for number in range(scale.pairs + 1):
        for data in (few, tiny):
            rate = data.count / timed(both[data.name])
            if number:  # the first round warms up
                rates[data.name].append(rate)
    ratios = [many / less for many, less in zip(rates["tiny"], rates["few"], strict=True)]
    low, high = interval(ratios)
    found = (
        f"{median(rates['tiny']):,.0f} per second, {median(rates['few']):,.0f} for {few.title}: "
        f"{median(ratios):.2f} ({low:.2f} to {high:.2f}), {len(ratios)} pairs"
    )
    what = f"{tiny.title}: objects per second of the entire command"
    rated = Finding(what, found, f"at least {RATE} of its own rate", median(ratios) >= RATE)
    return [rated, _growth(both[few.name], both[tiny.name], few, tiny)]


def _growth(less: Command, more: Command, few: Data, tiny: Data) -> Finding:
    peaks = []
    for command in (less, more):
        command.before()
        peaks.append(peak(command.words, command.environment))
        command.after()
    growth = peaks[1] - peaks[0]
    found = f"{peaks[1] / MIB:.0f} MiB, {peaks[0] / MIB:.0f} for {few.title}: {growth / MIB:.1f} MiB more"
    return Finding(
        f"{tiny.title}: peak of resident memory, all processes",
        found,
        f"less than {GROWTH // MIB} MiB more",
        growth < GROWTH,
    )


def charging(scale: Scale, site: Site, folder: Path) -> list[Finding]:
    """What the kernel charges for the files, against `contract.tmpfs_cost.charged`."""
    data, target = scale.sets["tiny"], folder / OURS
    with group() as place:
        if place is None:
            why = "no control group for memory can be made here"
            return [Finding(f"{data.title}: memory charged", why, "within 10% of the sum", reached=False)]
        used = run_in(place, commands(site, data.name, OURS, target), site.environment)
        said = sum_of(target)
        shutil.rmtree(target)
        shutil.rmtree(target.with_name(f"{OURS}.podferry"), ignore_errors=True)
    off = used / said - 1
    found = f"{used / MIB:.1f} MiB by the control group, {said / MIB:.1f} MiB by the sum: {off:+.1%}"
    return [Finding(f"{data.title}: memory charged", found, f"within {OFF:.0%} of the sum", abs(off) <= OFF)]


@contextmanager
def stated(sets: Sequence[Data], folder: Path) -> Iterator[Site]:
    """Versitygw with objects that were uploaded with checksums of the entire object.

    Raises:
        RuntimeError: It does not state them.
    """
    with bucket(folder) as (endpoint, held):
        client = boto3.client("s3", endpoint_url=endpoint)
        for data in sets:
            made = data.write(folder / "sources")
            for path in sorted(found for found in made.rglob("*") if found.is_file()):
                key = f"{data.name}/{path.relative_to(made)}"
                client.upload_file(str(path), BUCKET, key, ExtraArgs={"ChecksumAlgorithm": CHECKSUM})
            shutil.rmtree(made)
            head = client.head_object(Bucket=BUCKET, Key=key, ChecksumMode="ENABLED")
            if f"Checksum{CHECKSUM}" not in head:
                raise RuntimeError(f"versitygw states no {CHECKSUM} of {key}: {head}")
        yield Site("s3", f"versitygw, {CHECKSUM} of each object", endpoint, held, KEYS)


def verified(scale: Scale, folder: Path) -> list[Result]:
    """The comparison of checksums on against off."""
    sets = [scale.sets[name] for name in ("small", "large")]
    with stated(sets, folder / "stated") as site:
        return [
            row
            for data in sets
            for row in compare(_verifying(site, data, folder), scale.pairs, warm_up=scale.pairs > 1)
        ]


def _verifying(site: Site, data: Data, folder: Path) -> Contest:
    def words(switch: str) -> Command:
        usual = fetching(site, data.name, OURS, folder)
        uri, target = f"s3://{BUCKET}/{data.name}", folder / OURS
        return replace(usual, words=[sys.executable, VERIFYING, switch, site.endpoint, uri, str(target)])

    return Contest(
        f"{data.title}; {site.title}",
        ours=words("on"),
        peers={"not verified": words("off")},
        limit=fetching(site, data.name, LIMIT, folder),
        least={"not verified": VERIFIED},
    )


def warm(scale: Scale, site: Site, folder: Path) -> list[Finding]:
    """An agent whose staging directory is complete: time until its gate opens, and its idle memory."""
    data, stage = scale.sets["small"], folder / "stage"
    uri = f"s3://{BUCKET}/{data.name}"
    with staged(uri, stage, site.endpoint) as agent:
        time.sleep(REST)
        held = _resident_each(agent)
        gates = [_waited(agent) for _ in range(scale.pairs)]
    starts = [_started(uri, stage, site.endpoint) for _ in range(scale.pairs)]
    shutil.rmtree(stage)
    shutil.rmtree(stage.with_name("stage.podferry"), ignore_errors=True)
    shown = " + ".join(f"{one / MIB:.0f}" for one in held)
    return [
        _opening(f"the gate, {data.title} complete: `podferry wait` from start to exit", gates),
        _opening(f"{data.title} already complete: from the start of the agent to the open gate", starts),
        Finding(
            f"the agent's resident memory, idle after {data.title}",
            f"{sum(held) / MIB:.0f} MiB ({shown}: supervisor and worker)",
            f"less than {IDLE // MIB} MiB",
            sum(held) < IDLE,
        ),
    ]


def _opening(what: str, seconds: list[float]) -> Finding:
    return Finding(what, _starts(seconds), f"less than {GATE * 1000:.0f} ms", median(seconds) < GATE)


def _resident_each(agent: LocalAgent) -> list[int]:
    """Bytes of each of the agent's processes, without those that it has started."""
    processes = family(agent.process.pid)
    return [resident(one) - sum(map(resident, family(one)[1:])) for one in processes]


def _started(uri: str, stage: Path, endpoint: str) -> float:
    """Seconds from the start of an agent to its open gate."""
    began = time.perf_counter()
    with staged(uri, stage, endpoint):
        return time.perf_counter() - began


def _waited(agent: LocalAgent) -> float:
    """Seconds of a gate that finds everything complete."""
    started = time.perf_counter()
    subprocess.run([OURS_PROGRAM, "wait", "--agent", agent.url], check=True, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started


def _starts(seconds: Sequence[float]) -> str:
    low, high = interval(seconds)
    return f"{median(seconds) * 1000:.0f} ms ({low * 1000:.0f} to {high * 1000:.0f}), {len(seconds)} starts"


PARTS = ("growing", "charging", "warm", "listed", "verified")


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--pairs", type=int, help="rounds that count")
    parser.add_argument("--short", action="store_true", help="little data, one round: shows that it runs")
    given = parser.parse_args(words)
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"no {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    isolate(os.environ)
    os.environ |= KEYS
    scale = Scale(SHORT, given.pairs or 1) if given.short else Scale(FULL, given.pairs or 7)
    chosen = given.parts or PARTS
    findings: list[Finding] = []
    results: list[Result] = []
    with in_memory() as folder:
        if set(chosen) - {"verified"}:
            for name in ("few", "tiny", "small"):
                scale.sets[name].write(folder / "root" / BUCKET)
            with nginx(folder / "nginx", folder / "root") as sites:
                for part in (growing, charging, warm):
                    if part.__name__ in chosen:
                        findings += part(scale, sites["plain"], folder)
                if "listed" in chosen:
                    results += listed(scale.sets["tiny"], scale.pairs, sites["distant"], folder)
        if "verified" in chosen:
            results += verified(scale, folder)
    about = measured_on(nginx_version(), REAL, **{name: version(name) for name in ("podferry", "obstore")})
    named = "-".join(["prefetch-inside", *given.parts, *(["short"] if given.short else [])])
    print(report(named, about, results, findings))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
