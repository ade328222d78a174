"""Times whole commands in interleaved pairs, and says how sure the ratio is.

Every round runs ours, each peer and the limit once, in a new random order, so that what slows the
machine down for a while slows all of them. Ratios are formed within a round.
"""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

OURS, LIMIT = "podferry", "limit"
"""How a contest calls the two that it always has."""
NOISE = " (noise)"
"""Behind the case, in the row of a peer against itself."""
RESAMPLES = 10_000
LEAST_SECONDS = 0.001
"""What is left at least of a time without the start, which may have taken longer than the whole."""


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
        starts: The same commands with almost no work, by contestant: each runs in the same round, and its
            time is subtracted for another row, the throughput without the start of the program.
    """

    case: str
    ours: Command
    peers: Mapping[str, Command]
    limit: Command
    least: Mapping[str, float] = field(default_factory=dict)
    noise: bool = False
    starts: Mapping[str, Command] = field(default_factory=dict)


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
    starts: dict[str, list[float]] = {name: [] for name in contest.starts}
    for number in range(0 if warm_up else 1, pairs + 1):
        shuffle(order)
        round_times = {name: timed(contestants[name]) for name in order}
        round_starts = {name: timed(contest.starts[name]) for name in order if name in contest.starts}
        shown = ", ".join(f"{name} {round_times[name]:.3f}" for name in contestants)
        say(f"{contest.case}: {'warm-up' if number == 0 else f'{number}/{pairs}'}: {shown} s")
        if number:
            for name, seconds in round_times.items():
                times[name].append(seconds)
            for name, seconds in round_starts.items():
                starts[name].append(seconds)
    rows = [*contest.peers, *({LIMIT} & set(contest.least))]
    results = [_result(contest, peer, times) for peer in rows]
    if starts:
        results += [_result(contest, peer, _without(starts, times), ", without the start") for peer in rows]
    if contest.noise:
        again = {**times, OURS: times[LIMIT]}
        results += [_result(contest, peer, again, NOISE) for peer in contest.peers]
    return results


def _without(
    starts: Mapping[str, Sequence[float]], times: Mapping[str, Sequence[float]]
) -> Mapping[str, Sequence[float]]:
    """What is left of the times, round by round."""
    return {
        name: [
            max(whole - start, LEAST_SECONDS) for whole, start in zip(times[name], starts[name], strict=True)
        ]
        for name in times
    }


def _result(contest: Contest, peer: str, times: Mapping[str, Sequence[float]], note: str = "") -> Result:
    ours, theirs = times[OURS], times[peer]
    ratios = [their / our for our, their in zip(ours, theirs, strict=True)]
    low, high = interval(ratios)
    return Result(
        case=contest.case + note,
        peer=f"{peer}, twice" if note == NOISE else peer,
        ours_s=round(median(ours), 4),
        peer_s=round(median(theirs), 4),
        limit_s=round(median(times[LIMIT]), 4),
        ratio=round(median(ratios), 2),
        pairs=len(ratios),
        low=round(low, 2),
        high=round(high, 2),
        least=None if note == NOISE else contest.least.get(peer),
    )


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The middle 95% of the medians of resamples: a percentile bootstrap, with a fixed seed."""
    draw = random.Random(0).choices  # noqa: S311 - a sample, no secret
    medians = sorted(median(draw(values, k=len(values))) for _ in range(RESAMPLES))
    return medians[RESAMPLES * 25 // 1000], medians[RESAMPLES * 975 // 1000]
