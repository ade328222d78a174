"""What takes one of the agent's defences out, to see that the oracle notices: `python -m faults --prove`.

Each is applied in the worker's process, before it begins (`patched/sitecustomize.py`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any

from faults.loaded import load_agent
from faults.plan import MIB, Fault, Plan

SLOW_SECONDS = 8.0
"""How long a slow machine takes to read a file again."""


def _everywhere(name: str, replacement: object) -> None:
    """Replace a function in every module of the agent that has imported it.

    Raises:
        RuntimeError: None has: the defence has another name by now, and this table must follow.
    """
    load_agent()
    found = [
        module
        for path, module in sys.modules.items()
        if path.startswith("podferry.sidecar.") and hasattr(module, name)
    ]
    if not found:
        raise RuntimeError(f"nothing in podferry.sidecar is called {name}")
    for module in found:
        setattr(module, name, replacement)


def _no_data() -> None:
    from podferry.sidecar.checkpoint.upload.file_sender import FileSender, FileUpload  # noqa: PLC0415 - in the worker alone
    from podferry.sidecar.checkpoint.upload.upload_journal import FileSent  # noqa: PLC0415 - in the worker alone

    async def send(self: FileSender, upload: FileUpload) -> None:
        upload.journal.record(FileSent(upload.file.name))

    FileSender.send = send  # type: ignore[method-assign]


def _no_check_of_what_is_sent() -> None:
    """Read what is sent only once the trainer has overwritten it, as a slow machine may."""
    from podferry.sidecar.checkpoint.upload.verified_reader import VerifiedReader  # noqa: PLC0415 - in the worker alone
    from podferry.sidecar.runtime.file_identity import FileIdentity  # noqa: PLC0415 - in the worker alone

    def part(self: VerifiedReader, number: int, expected: str) -> bytes:
        start, length = self.span(number)
        deadline = time.monotonic() + SLOW_SECONDS
        while FileIdentity.of(self.path.stat()) == self.identity and time.monotonic() < deadline:
            time.sleep(0.05)
        return self.path.read_bytes()[start : start + length]

    VerifiedReader.part = part  # type: ignore[method-assign]


def _no_rules() -> None:
    from podferry.sidecar.checkpoint.detect.format_checks import check_format  # noqa: PLC0415 - in the worker alone

    _everywhere("check_format", lambda path: check_format(path)._replace(defect=None))
    _everywhere("incomplete_reason", lambda *_, **__: None)


def _all_sure() -> None:
    """Everything that is not certainly incomplete is proven."""
    _everywhere("judge", lambda *_, **__: ())


def _own_links() -> None:
    """Take the agent's own links for renames; as on a full volume, the first try to hold a version fails."""
    from podferry.contract.errors import Refused  # noqa: PLC0415 - in the worker alone
    from podferry.sidecar.checkpoint.detect.change_times import ChangeTimes  # noqa: PLC0415 - in the worker alone
    from podferry.sidecar.checkpoint.upload.hardlink_hold import HardlinkHolds  # noqa: PLC0415 - in the worker alone

    hold, tried = HardlinkHolds.link, set[Any]()

    @wraps(hold)
    def link(self: HardlinkHolds, candidate: Any, *given: Any, **more: Any) -> Any:
        held = hold(self, candidate, *given, **more)
        if candidate.version not in tried:
            tried.add(candidate.version)
            held.release()
            raise Refused.of(f"{candidate.name} cannot be held")
        return held

    HardlinkHolds.link = link  # type: ignore[method-assign]
    ChangeTimes.link = lambda *_: False  # type: ignore[method-assign]


def _same_folder() -> None:
    from podferry.sidecar.checkpoint.commit.committer import Committer  # noqa: PLC0415 - in the worker alone

    async def find_existing(self: Committer, name: str, folder: str) -> None:
        """Say that there is none: else it would not be sent at all."""

    Committer.find_existing = find_existing  # type: ignore[method-assign]
    _everywhere("checkpoint_folder", lambda name, files: f"{name}-{'0' * 12}")


def _no_check_of_what_comes() -> None:
    """Ignore the checksums of the commit and those that the store states."""
    _everywhere("committed_checksum", lambda *_: None)
    _everywhere("response_checksum", lambda *_: None)


def _an_older_one() -> None:
    from podferry.sidecar.checkpoint.restore.choice import RestoreChoice  # noqa: PLC0415 - in the worker alone

    best_first = RestoreChoice.candidates

    @wraps(best_first)
    async def candidates(self: RestoreChoice) -> AsyncIterator[Any]:
        found = best_first(self)
        await anext(found, None)
        async for commit in found:
            yield commit

    RestoreChoice.candidates = candidates  # type: ignore[method-assign]


def _removes_the_last() -> None:
    from podferry.contract.destination.commit import commit_name  # noqa: PLC0415 - in the worker alone
    from podferry.sidecar.checkpoint.commit.committer import Committer  # noqa: PLC0415 - in the worker alone

    create = Committer.commit

    @wraps(create)
    async def commit(self: Committer, *given: Any, **more: Any) -> Any:
        made = await create(self, *given, **more)
        if made.sequence > 1:
            await self.reader.store.delete([commit_name(made.sequence - 1)])
        return made

    Committer.commit = commit  # type: ignore[method-assign]


def _says_so_at_once() -> None:
    from podferry.contract.http_api import Durability  # noqa: PLC0415 - in the worker alone
    from podferry.sidecar.checkpoint.pipeline.pipeline import CheckpointPipeline  # noqa: PLC0415 - in the worker alone

    async def flush(self: CheckpointPipeline, *_: Any, **__: Any) -> Durability:
        return Durability(durable=True)

    CheckpointPipeline.flush = flush  # type: ignore[method-assign]


def _no_ledger() -> None:
    from podferry.sidecar.checkpoint.upload.upload_journal import UploadJournal, UploadJournals  # noqa: PLC0415 - in the worker alone

    def load(self: UploadJournals, number: int) -> UploadJournal | None:
        """Know of no upload that an earlier worker began."""

    UploadJournals.load = load  # type: ignore[method-assign]


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
    "no-data": Sabotage("data is there before its commit", "wrong", _no_data),
    "no-check-of-what-is-sent": Sabotage(
        "what is sent is what was fingerprinted",
        "wrong",
        _no_check_of_what_is_sent,
        writer="joblib_in_place",
        pace=10.0,  # doubtful ones are sent after a long pause, and overwritten after that
    ),
    "no-rules": Sabotage(
        "a torn save is no checkpoint",
        "wrong",
        _no_rules,
        (Fault("kill in a save", 3, part=0.4),),
        count=4 * MIB,
    ),
    "all-sure": Sabotage(
        "what is not proven is doubtful",
        "wrong",
        _all_sure,
        (Fault("kill in a save", 3, part=0.5),),
        "directory_slow",  # a save takes seconds: the kill never comes after its end
    ),
    "own-links": Sabotage(
        "the agent's own links are no renames",
        "wrong",
        _own_links,
        tuple(Fault("kill in a save", save, part=part) for save, part in ((3, 0.5), (4, 0.7), (5, 0.9))),
        "raw_numbered",
        count=4 * MIB,
    ),
    "same-folder": Sabotage(
        "another content goes to another folder", "lost", _same_folder, writer="joblib_dump"
    ),
    "no-check-of-what-comes": Sabotage(
        "what is restored is what was committed",
        "wrong",
        _no_check_of_what_comes,
        (Fault("flipped answer", pod=2, count=50),),
    ),
    "an-older-one": Sabotage("the newest commit is restored", "lost", _an_older_one),
    "removes-the-last": Sabotage("a commit stays", "lost", _removes_the_last),
    "says-so-at-once": Sabotage(
        "durable means committed",
        "claimed",
        _says_so_at_once,
        pace=0.2,  # it ends before the last save has been quiet
    ),
}
"""Each defence that can be taken out, by its name."""
BARE: Mapping[str, Callable[[], None]] = {"no-ledger": _no_ledger}
"""Those whose lack `faults.kills` shows, since nothing becomes wrong by it."""


def take_out(name: str) -> None:
    """Take a defence out of this process."""
    (BARE.get(name) or SABOTAGES[name].take_out)()
