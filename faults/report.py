"""What a fault run says: a line for each episode, and the figures at the end."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from faults.known import KNOWN
from faults.pod import unshared
from faults.run import Record
from faults.sabotage import SABOTAGES
from faults.store import Served

FIGURES = {
    "wrong": "incomplete or wrong checkpoint sure or restored",
    "lost": "commit lost, or the newest sure one not restored",
    "claimed": "said to be durable or sure, and not",
    "left": "finished before a calm delete, and not drained",
    "stuck": "healthy again, and no end",
    "crashed": "the agent ended by an error of its own",
}


COUNTS = {
    "commits": "whole checkpoints committed",
    "unproven": "of them doubtful at the end",
    "torn": "incomplete ones committed, all of them doubtful to the end",
    "restores": "restores",
    "passed_over": "whole and doubtful ones that a restore passed over",
}


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _kinds(fired: Counter[str]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in fired.most_common())


def say(record: Record) -> None:
    """One line for an episode."""
    shape = "sidecar" if record["sidecar"] else "run"
    found = "; ".join(f"{one['figure']}: {one['what']}" for one in record["violations"]) or "ok"
    head = f"seed {record['seed']}: {record['writer']} ({shape}), {record['seconds']:.0f} s"
    commits = f"{record['commits']} whole and {record['torn']} torn commits"
    lives = f"exits {record['codes']}, {commits}, {record['restores']} restores"
    _print(f"{head}, {lives}; {_kinds(Counter(record['fired']))}: {found}")


def say_proof(name: str, record: Record) -> bool:
    """What the oracle said without a defence; whether it is what it must say."""
    sabotage = SABOTAGES[name]
    found = [one["what"] for one in record["violations"] if one["figure"] == sabotage.figure]
    _print(f"without `{sabotage.defence}`: {f'{sabotage.figure}: {found[0]}' if found else 'NOT NOTICED'}")
    return bool(found)


def report(records: Sequence[Record], wanted: Sequence[str], store: Served, seconds: float) -> int:
    """Print what was done and what came of it; 1 where a promise was broken, else 0."""
    fired = sum((Counter(record["fired"]) for record in records), Counter[str]())
    seeds = [int(record["seed"]) for record in records]
    spanned = f"{len(records)} episodes, seeds {min(seeds)} to {max(seeds)}"
    _print(f"\n{fired.total()} faults in {spanned}; store: {store.name}; {seconds:.0f} s")
    for kind, count in fired.most_common():
        _print(f"  {count:5}  {kind}")
    for line in (*_writers(records, wanted), *_left_out(store)):
        _print(f"  {line}")
    for name, meaning in COUNTS.items():
        _print(f"{meaning}: {sum(record.get(name, 0) for record in records)}")
    found = [(record["seed"], violation) for record in records for violation in record["violations"]]
    for figure, meaning in FIGURES.items():
        _print(f"{meaning}: {sum(violation['figure'] == figure for _, violation in found)}")
    for seed, violation in found:
        _print(f"  seed {seed}: {violation['figure']}: {violation['what']}")
    return 1 if found else 0


def _writers(records: Sequence[Record], wanted: Sequence[str]) -> Iterator[str]:
    for name in wanted:
        mine = [record for record in records if record["writer"] == name]
        faults = sum(sum(record["fired"].values()) for record in mine)
        commits = sum(record["commits"] for record in mine)
        done = f"{len(mine)} episodes, {faults} faults, {commits} commits" if mine else "took no part"
        yield f"{name} ({'real' if KNOWN[name].real else 'imitated'}): {done}"


def _left_out(store: Served) -> Iterator[str]:
    if not unshared():
        yield "no volume was filled: this machine lets nobody mount one"
    if not store.checks:
        yield "no bits were flipped on the way to the store: this one does not compare, as S3 does"
