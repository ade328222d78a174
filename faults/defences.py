"""How each of the agent's defences is taken out of a worker's process, before it begins.

A function here replaces what defends; `podferry.sidecar` is imported within, since only the worker needs it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator
from functools import wraps
from typing import Any

from faults.loaded import load_agent

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


def no_data() -> None:
    """Note that a file was sent, and send nothing."""
    from podferry.sidecar.checkpoint.upload.file_sender import FileSender, FileUpload  # noqa: PLC0415 - in the worker alone
    from podferry.sidecar.checkpoint.upload.upload_journal import FileSent  # noqa: PLC0415 - in the worker alone

    async def send(self: FileSender, upload: FileUpload) -> None:
        upload.journal.record(FileSent(upload.file.name))

    FileSender.send = send  # type: ignore[method-assign]


def no_check_of_what_is_sent() -> None:
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


def no_rules() -> None:
    """Take whatever is there for complete, by its format and by the framework's rules."""
    from podferry.sidecar.checkpoint.detect.format_checks import check_format  # noqa: PLC0415 - in the worker alone

    _everywhere("check_format", lambda path: check_format(path)._replace(defect=None))
    _everywhere("incomplete_reason", lambda *_, **__: None)


def all_sure() -> None:
    """Everything that is not certainly incomplete is proven."""
    _everywhere("judge", lambda *_, **__: ())


def own_links() -> None:
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


def same_folder() -> None:
    """Send every content of a checkpoint to one folder."""
    from podferry.sidecar.checkpoint.commit import committed_content  # noqa: PLC0415 - in the worker alone

    async def find(*_: object) -> committed_content.SameContent:
        """Say that there is none: else it would not be sent at all, or to another folder."""
        return committed_content.SameContent()

    committed_content.CommittedContent.find = find  # type: ignore[method-assign, assignment]
    _everywhere("checkpoint_folder", lambda name, files: f"{name}-{'0' * 12}")


def no_check_of_what_comes() -> None:
    """Ignore the checksums of the commit and those that the store states."""
    _everywhere("committed_checksum", lambda *_: None)
    _everywhere("response_checksum", lambda *_: None)


def an_older_one() -> None:
    """Restore the second best commit."""
    from podferry.sidecar.checkpoint.restore.choice import RestoreChoice  # noqa: PLC0415 - in the worker alone

    best_first = RestoreChoice.candidates

    @wraps(best_first)
    async def candidates(self: RestoreChoice) -> AsyncIterator[Any]:
        found = best_first(self)
        await anext(found, None)
        async for commit in found:
            yield commit

    RestoreChoice.candidates = candidates  # type: ignore[method-assign]


def removes_the_last() -> None:
    """Delete the commit before each new one."""
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


def says_so_at_once() -> None:
    """Call everything durable without a look."""
    from podferry.contract.http_api import Durability  # noqa: PLC0415 - in the worker alone
    from podferry.sidecar.checkpoint.pipeline.pipeline import CheckpointPipeline  # noqa: PLC0415 - in the worker alone

    async def flush(self: CheckpointPipeline, *_: Any, **__: Any) -> Durability:
        return Durability(durable=True)

    CheckpointPipeline.flush = flush  # type: ignore[method-assign]


def no_ledger() -> None:
    """Forget what an upload has sent."""
    from podferry.sidecar.checkpoint.upload.upload_journal import UploadJournal, UploadJournals  # noqa: PLC0415 - in the worker alone

    def load(self: UploadJournals, number: int) -> UploadJournal | None:
        """Know of no upload that an earlier worker began."""

    UploadJournals.load = load  # type: ignore[method-assign]
