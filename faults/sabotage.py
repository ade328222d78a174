"""What takes one of the agent's defences out, to see that the oracle notices: `python -m faults --prove`.

Each is applied in the worker's process, before it begins (`patched/sitecustomize.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from faults import defences
from faults.plan import MIB, Fault, Plan


@dataclass(frozen=True, slots=True)
class Sabotage:
    """A defence that can be taken out.

    Attributes:
        defence: What is missing then.
        figure: What the oracle must report.
        take_out: Does so in the worker's process.
        faults: What shows it.
        writer: Who saves.
        count: Elements of the large tensor.
        pace: Seconds between two saves, at most.
    """

    defence: str
    figure: str
    take_out: Callable[[], None]
    faults: tuple[Fault, ...] = ()
    writer: str = "numpy_savez"
    count: int = MIB // 4
    pace: float = 2.0

    def plan(self, seed: int) -> Plan:
        """An episode that shows it: saves, a delete, a restore, more saves."""
        return Plan(
            seed=seed,
            writer=self.writer,
            sidecar=False,
            steps=6,
            count=self.count,
            rotate=0,
            pace=self.pace,
            asks=0.0,
            rate=16 * MIB,
            deleted=4,
            faults=self.faults,
        )


SABOTAGES: Mapping[str, Sabotage] = {
    "no-data": Sabotage("data is there before its commit", "wrong", defences.no_data),
    "no-check-of-what-is-sent": Sabotage(
        "what is sent is what was fingerprinted",
        "wrong",
        defences.no_check_of_what_is_sent,
        writer="joblib_in_place",
        pace=10.0,  # doubtful ones are sent after a long pause, and overwritten after that
    ),
    "no-rules": Sabotage(
        "a torn save is no checkpoint",
        "wrong",
        defences.no_rules,
        (Fault("kill in a save", 3, part=0.4),),
        count=4 * MIB,
    ),
    "all-sure": Sabotage(
        "what is not proven is doubtful",
        "wrong",
        defences.all_sure,
        (Fault("kill in a save", 3, part=0.5),),
        "directory_slow",  # a save takes seconds: the kill never comes after its end
    ),
    "own-links": Sabotage(
        "the agent's own links are no renames",
        "wrong",
        defences.own_links,
        tuple(Fault("kill in a save", save, part=part) for save, part in ((3, 0.5), (4, 0.7), (5, 0.9))),
        "raw_numbered",
        count=4 * MIB,
    ),
    "same-folder": Sabotage(
        "another content goes to another folder", "lost", defences.same_folder, writer="joblib_dump"
    ),
    "no-check-of-what-comes": Sabotage(
        "what is restored is what was committed",
        "wrong",
        defences.no_check_of_what_comes,
        (Fault("flipped answer", pod=2, count=50),),
    ),
    "an-older-one": Sabotage("the newest commit is restored", "lost", defences.an_older_one),
    "removes-the-last": Sabotage("a commit stays", "lost", defences.removes_the_last),
    "says-so-at-once": Sabotage(
        "durable means committed",
        "claimed",
        defences.says_so_at_once,
        pace=0.2,  # it ends before the last save has been quiet
    ),
}
"""Each defence that can be taken out, by its name."""
BARE: Mapping[str, Callable[[], None]] = {"no-ledger": defences.no_ledger}
"""Those whose lack `faults.kills` shows, since nothing becomes wrong by it."""


def take_out(name: str) -> None:
    """Take a defence out of this process."""
    (BARE.get(name) or SABOTAGES[name].take_out)()
