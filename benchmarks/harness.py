"""Times whole commands in interleaved pairs, and says how sure the ratio is.

Every round runs ours, each peer and the limit once, in a new random order, so that what slows the
machine down for a while slows all of them. Ratios are formed within a round.
"""

from __future__ import annotations

import json
import os
import platform
import random
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

OURS, LIMIT = "podferry", "limit"
"""How a contest calls the two that it always has."""
RESAMPLES = 10_000
RESULTS = Path(__file__).parents[1] / "build" / "bench"


def nothing() -> None:
    """Prepares or checks nothing."""


@dataclass(frozen=True, slots=True)
class Command:
    """One contestant.

    Attributes:
        words: The program and its arguments.
        environment: Added to this process's own.
        before: Called before each run, not timed: removes what the last run left.
        after: Called after each run, not timed: raises where the work was not done.
        prints_seconds: What counts is what it prints, not its own start and end.
    """

    words: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[], None] = nothing
    after: Callable[[], None] = nothing
    prints_seconds: bool = False


@dataclass(frozen=True, slots=True)
class Contest:
    """One case: ours against peers, with the limit of the machine.

    Attributes:
        case: For people.
        least: The ratios that are to be reached, by peer; one for the limit (`LIMIT`) makes a row of it.
        noise: The limit does a peer's work once more: their ratio is the noise of the machine.
    """

    case: str
    ours: Command
    peers: Mapping[str, Command]
    limit: Command
    least: Mapping[str, float] = field(default_factory=dict)
    noise: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """Medians in seconds; the ratio is the peer's time over ours, bounded at 95%."""

    case: str
    peer: str
    ours_s: float
    peer_s: float
    limit_s: float
    ratio: float
    pairs: int
    low: float
    high: float
    least: float | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at once and is no time."""

    what: str
    found: str
    wanted: str
    reached: bool


def timed(command: Command) -> float:
    """Seconds from the start of the process to its end, or those that it prints.

    Raises:
        RuntimeError: It failed; with the end of what it printed.
    """
    command.before()
    started = time.perf_counter()
    # A session of its own, as an agent has: Linux shares busy cores out among sessions.
    done = subprocess.run(
        command.words,
        start_new_session=True,
        env={**os.environ, **command.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - started
    if done.returncode:
        said = (done.stdout + done.stderr)[-2000:]
        raise RuntimeError(f"{' '.join(command.words)} ended with {done.returncode}:\n{said}")
    command.after()
    return float(done.stdout) if command.prints_seconds else seconds


def compare(
    contest: Contest, pairs: int, say: Callable[[str], None] = print, *, warm_up: bool = True
) -> list[Result]:
    """Run a contest: one warm-up round that does not count, unless disabled, then `pairs` rounds."""
    contestants = {OURS: contest.ours, **contest.peers, LIMIT: contest.limit}
    order = list(contestants)
    shuffle = random.Random(contest.case).shuffle  # noqa: S311 - an order, no secret
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(0 if warm_up else 1, pairs + 1):
        shuffle(order)
        round_times = {name: timed(contestants[name]) for name in order}
        shown = ", ".join(f"{name} {round_times[name]:.3f}" for name in contestants)
        say(f"{contest.case}: {'warm-up' if number == 0 else f'{number}/{pairs}'}: {shown} s")
        if number:
            for name, seconds in round_times.items():
                times[name].append(seconds)
    rows = [*contest.peers, *({LIMIT} & set(contest.least))]
    results = [_result(contest, peer, times) for peer in rows]
    if contest.noise:
        again = {**times, OURS: times[LIMIT]}
        results += [_result(contest, peer, again, " (noise)") for peer in contest.peers]
    return results


def _result(contest: Contest, peer: str, times: Mapping[str, Sequence[float]], note: str = "") -> Result:
    ours, theirs = times[OURS], times[peer]
    ratios = [their / our for our, their in zip(ours, theirs, strict=True)]
    low, high = interval(ratios)
    return Result(
        case=contest.case + note,
        peer=f"{peer}, twice" if note else peer,
        ours_s=round(median(ours), 4),
        peer_s=round(median(theirs), 4),
        limit_s=round(median(times[LIMIT]), 4),
        ratio=round(median(ratios), 2),
        pairs=len(ratios),
        low=round(low, 2),
        high=round(high, 2),
        least=None if note else contest.least.get(peer),
    )


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The middle 95% of the medians of resamples: a percentile bootstrap, with a fixed seed."""
    draw = random.Random(0).choices  # noqa: S311 - a sample, no secret
    medians = sorted(median(draw(values, k=len(values))) for _ in range(RESAMPLES))
    return medians[RESAMPLES * 25 // 1000], medians[RESAMPLES * 975 // 1000]


def machine(**more: str) -> dict[str, str]:
    """What the figures were measured on, and with."""
    return {
        "cpu": _first("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": _first("/proc/meminfo", "MemTotal"),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        **more,
    }


def _first(path: str, name: str) -> str:
    lines = Path(path).read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


def report(
    name: str,
    about: Mapping[str, str],
    results: Sequence[Result],
    findings: Sequence[Finding] = (),
    more: Mapping[str, Sequence[Mapping[str, str]]] | None = None,
) -> Path:
    """Print tables, and write the same as JSON.

    Args:
        name: Of the benchmark: titles the table, names the document.
        about: See `machine`.
        results: Times.
        findings: What is no time.
        more: Tables of a benchmark's own, by their titles; each row holds the same columns.

    Returns:
        Where the document is.
    """
    console = Console(width=max(160, Console().width))
    if results:
        console.print(_times_table(name, results))
    if findings:
        console.print(_findings_table(findings))
    for title, rows in (more or {}).items():
        console.print(_table_of(title, rows))
    console.print("\n".join(f"{key}: {value}" for key, value in about.items()), highlight=False)
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    cases = [asdict(result) for result in results]
    document: dict[str, object] = {"machine": dict(about), "cases": cases, **(more or {})}
    if findings:
        document["findings"] = [asdict(finding) for finding in findings]
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path


def _times_table(name: str, results: Sequence[Result]) -> Table:
    columns = {
        "case": "left",
        "peer": "left",
        "podferry s": "right",
        "peer s": "right",
        "limit s": "right",
        "peer / podferry": "right",
        "95%": "right",
        "at least": "right",
        "pairs": "right",
    }
    table = Table(title=f"{name}: medians")
    for column, justify in columns.items():
        table.add_column(column, justify=justify)  # type: ignore[arg-type]  # the table above holds literals
    for result in results:
        times = (f"{seconds:.3f}" for seconds in (result.ours_s, result.peer_s, result.limit_s))
        bounds = f"{result.low:.2f} to {result.high:.2f}"
        least = "" if result.least is None else f"{result.least:.2f}{_reached(result, result.least)}"
        row = (result.case, result.peer, *times, f"{result.ratio:.2f}", bounds, least, str(result.pairs))
        table.add_row(*row)
    return table


def _reached(result: Result, least: float) -> str:
    """What the interval says of the ratio that is to be reached."""
    if result.low >= least:
        return " yes"
    return " NO" if result.high < least else " unsure"


def _table_of(title: str, rows: Sequence[Mapping[str, str]]) -> Table:
    table = Table(*rows[0], title=title)
    for row in rows:
        table.add_row(*row.values())
    return table


def _findings_table(findings: Sequence[Finding]) -> Table:
    table = Table("what", "found", "wanted", "reached")
    for finding in findings:
        table.add_row(finding.what, finding.found, finding.wanted, "yes" if finding.reached else "NO")
    return table
