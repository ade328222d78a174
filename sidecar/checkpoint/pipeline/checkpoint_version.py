"""One version of a checkpoint and its states. An earlier and a later save under one name are two versions.

    from        to          when
    detected    held        its files are linked
    held        sending     the upload worker takes it
    held        replaced    a newer version of its name is held
    sending     sent        its objects are all at the destination
    sending     held        the upload failed or was overtaken: it is retried
    sending     set-apart   the upload was refused for good: others go first
    sending     changed     its files changed in place
    sent        committed   its commit exists
    sent        published   it is a rank's part: the other ranks know it and it waits for theirs
    sent        held        the commit failed: it is retried
    sent        set-apart   the commit was refused for good: others go first
    sent        changed     the published part was removed meanwhile
    sent        superseded  a newer commit leaves no sequence for it
    set-apart   sending     its next try: rarely, and at the end
    set-apart   replaced    a newer version of its name is held
    published   committed   all ranks' parts are committed together
    published   replaced    a newer version of its name is published
    published   changed     what was sent is removed: it must be detected again
    published   superseded  a newer checkpoint is committed
    committed   changed     its files have other content, under their old identity
    restored    changed     the same

A version begins as detected, or where an earlier start or the journal left it: held, published, committed,
restored (training resumed from it) or ignored (older than the newest commit when the agent started).
Only `VersionRegistry` moves versions: for the pipeline (to held and replaced), the upload queue (to sending),
the upload worker (from sending and sent) and the gang publisher (from published).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum

import msgspec

from podferry.contract.errors import FerryError
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.upload.hardlink_hold import HeldCheckpoint
from podferry.sidecar.state.journal import PublishedPart


class VersionState(Enum):
    """The state of a version; the value is its name in messages."""

    DETECTED = "detected"
    HELD = "held"
    SENDING = "sending"
    SENT = "sent"
    SET_APART = "set-apart"
    PUBLISHED = "published"
    COMMITTED = "committed"
    RESTORED = "restored"
    IGNORED = "ignored"
    REPLACED = "replaced"
    CHANGED = "changed"
    SUPERSEDED = "superseded"


_S = VersionState
TRANSITIONS: Mapping[VersionState, frozenset[VersionState]] = {
    _S.DETECTED: frozenset({_S.HELD}),
    _S.HELD: frozenset({_S.SENDING, _S.REPLACED}),
    _S.SENDING: frozenset({_S.SENT, _S.HELD, _S.SET_APART, _S.CHANGED}),
    _S.SENT: frozenset({_S.COMMITTED, _S.PUBLISHED, _S.HELD, _S.SET_APART, _S.CHANGED, _S.SUPERSEDED}),
    _S.SET_APART: frozenset({_S.SENDING, _S.REPLACED}),
    _S.PUBLISHED: frozenset({_S.COMMITTED, _S.REPLACED, _S.CHANGED, _S.SUPERSEDED}),
    _S.COMMITTED: frozenset({_S.CHANGED}),
    _S.RESTORED: frozenset({_S.CHANGED}),
} | dict.fromkeys((_S.IGNORED, _S.REPLACED, _S.CHANGED, _S.SUPERSEDED), frozenset())
"""The table above as data; final states lead nowhere."""

DURABLE = frozenset({_S.COMMITTED, _S.RESTORED})
WAITING = frozenset({_S.HELD, _S.SET_APART})
"""Linked, and to be sent: a newer version that is committed first leaves a sequence for each of them."""
LINKED = WAITING | {_S.SENDING, _S.SENT}
"""Linked, so that a restarted worker finds them by the notes of their holds."""
UNPINNED = frozenset({_S.DETECTED, _S.CHANGED})
"""Neither linked nor durable: the next scan decides."""
SETTLED = frozenset(VersionState) - UNPINNED - {_S.REPLACED}
"""A scan that finds this very version again has nothing to do."""


class IllegalTransition(RuntimeError):
    """A defect: the table has no such transition, or the state has no such data."""


class CheckpointVersion:
    """A version of a checkpoint; `failure` is the error of its last attempt, or None.

    It begins with a `hold` or a `part` if an earlier worker held or published it. `rewritten`: its content is
    new under an old identity, so its times do not show its age.
    """

    def __init__(
        self,
        candidate: Candidate,
        state: VersionState,
        hold: HeldCheckpoint | None = None,
        part: PublishedPart | None = None,
        *,
        rewritten: bool = False,
    ) -> None:
        self.candidate, self.rewritten = candidate, rewritten
        self.failure: FerryError | None = None
        self._state, self._hold, self._part = state, hold, part

    @property
    def name(self) -> str:
        """The checkpoint's name."""
        return self.candidate.name

    def settle_doubts(self) -> None:
        """It is proven complete."""
        self.candidate = replace(self.candidate, doubts=())

    def drop_doubts_of_part(self) -> None:
        """The part that the other ranks know is proven complete."""
        self._part = msgspec.structs.replace(self.part, doubts=())

    @property
    def state(self) -> VersionState:
        """Its state; only `move` changes it."""
        return self._state

    @property
    def hold(self) -> HeldCheckpoint:
        """The links that keep its files; raises `IllegalTransition` before it is held."""
        if self._hold is None:
            raise IllegalTransition(f"{self.name} is {self._state.value} and was not held")
        return self._hold

    @property
    def part(self) -> PublishedPart:
        """What the other ranks know; raises `IllegalTransition` before it is published."""
        if self._part is None:
            raise IllegalTransition(f"{self.name} is {self._state.value} and was not published")
        return self._part

    @property
    def number(self) -> int:
        """The hold's number, which is the version's age."""
        return self.hold.number

    @property
    def completed_at(self) -> float:
        """When a scan found it complete, seconds since the epoch."""
        return self._part.completed_at if self._part is not None else self.hold.completed_at

    def move(
        self, to: VersionState, hold: HeldCheckpoint | None = None, part: PublishedPart | None = None
    ) -> None:
        """Change the state; a version that becomes held or published gets its data with it.

        Raises:
            IllegalTransition: The table has no such transition.
        """
        if to not in TRANSITIONS[self._state]:
            raise IllegalTransition(f"{self.name} is {self._state.value} and cannot become {to.value}")
        self._state, self._hold, self._part = to, hold or self._hold, part or self._part
        if to is VersionState.PUBLISHED or to in DURABLE or not TRANSITIONS[to]:
            self.failure = None
