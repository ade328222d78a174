"""Looks at the destination from outside, with nothing of podferry's own reading.

What a commit says is taken from its JSON, objects from the store behind the proxy, what is true from the
trainer's ledger. Where the ledger does not know a content, since its trainer was killed between the end of a
save and its note, the real library is asked whether it can be loaded.

A commit is whole if its content is a save that was finished. A doubtful commit need not be; a sure one must.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from obstore.store import ObjectStore

from faults.destination import Destination, is_sure
from faults.ledger import Content, Good, Ledger, Violation, all_saved, contents, noted_step
from faults.resumption import resumed


class Oracle:
    """Knows what was whole before, and says what is broken now.

    Args:
        store: The destination's store, behind the proxy's back.
        lineage: Where in it: a prefix without a slash at its end.
        ledger: What the trainers noted.
        load: Asks the real library for the step of the checkpoint in a directory; raises if it cannot.
    """

    def __init__(self, store: ObjectStore, lineage: str, ledger: Ledger, load: Callable[[Path], int]) -> None:
        self._destination, self._ledger, self._load = Destination(store, lineage), ledger, load
        self._good: dict[int, Good] = {}
        self._torn: dict[int, Good] = {}
        self._bad: set[int] = set()
        self._reported = 0

    @property
    def newest(self) -> Good | None:
        """The last sure commit that was found whole."""
        return max(self._sure(), key=lambda good: good.sequence, default=None)

    @property
    def commits(self) -> int:
        """How many were found whole."""
        return len(self._good)

    @property
    def torn(self) -> int:
        """How many were found incomplete, and are doubtful."""
        return len(self._torn)

    @property
    def unproven(self) -> int:
        """How many were found whole, and are doubtful."""
        return len(self._good) - len(self._sure())

    def passed_over(self, step: int | None) -> int:
        """How many whole commits are newer than a step and doubtful: they are not restored by `auto`."""
        return len({good.step for good in self._good.values() if not good.sure and good.step > (step or 0)})

    def _sure(self) -> list[Good]:
        return [good for good in self._good.values() if good.sure]

    def look(self, *, reread: bool = False) -> list[Violation]:
        """Check every commit that is there, and that those that were there still are.

        Args:
            reread: Read every object once more instead of trusting what was read before.
        """
        if reread:
            self._destination.forget()
        # What was called durable by now must be in the list that is read after it.
        events = self._ledger.events()
        listed, confirmed = self._destination.commits(), self._destination.confirmed()
        finished = [event for event in self._ledger.events() if event["event"] == "finish"]
        found = []
        for number in sorted(listed.keys() - self._bad):
            raw = self._destination.read(listed[number])
            flaw = self._commit(number, raw, confirmed, finished) if raw is not None else None
            if flaw is not None:
                self._bad.add(number)
                found.append(flaw)
        return [*found, *self._kept(listed), *self._claims(events)]

    def _commit(
        self,
        number: int,
        raw: bytes,
        confirmed: set[tuple[int, int | None]],
        finished: Sequence[Mapping[str, Any]],
    ) -> Violation | None:
        """What is wrong with a commit; what is right is remembered."""
        known = self._good.get(number)
        try:
            commit = json.loads(raw)
            content, flaws = self._content(commit["files"])
            sure = is_sure(commit, number, confirmed)
        except (ValueError, LookupError, TypeError) as error:
            flaws, content, commit, sure = [f"it is no commit: {error!r}"], {}, {}, True
        if raw != self._raw(number, raw):
            flaws.append("another commit has taken its place")
        if not flaws and known is not None:
            self._good[number] = replace(known, sure=sure)
        elif not flaws:
            flaws = self._new(Good(number, 0, raw, str(commit["writer"]), content, sure), finished)
        if not flaws:
            return None
        figure = "lost" if known is not None else "wrong"
        return Violation(figure, f"commit {number} ({commit.get('checkpoint')}): {'; '.join(flaws)}")

    def _raw(self, number: int, otherwise: bytes) -> bytes:
        """The document of a commit as it was first read."""
        known = self._good.get(number) or self._torn.get(number)
        return known.raw if known is not None else otherwise

    def _new(self, found: Good, finished: Sequence[Mapping[str, Any]]) -> list[str]:
        """Remember a commit as whole or as torn; why it must not be there."""
        again = found.sequence in self._torn
        step = noted_step(found.content, finished)
        step = step if step is not None or again else self._loaded(found.content)
        if step is not None:
            self._good[found.sequence] = replace(found, step=step)
            self._torn.pop(found.sequence, None)
        elif not found.sure:
            self._torn[found.sequence] = found
        else:
            names = ", ".join(sorted(found.content))
            return [f"it is sure{' by now' if again else ''}, and its content is no finished save: {names}"]
        return []

    def _content(self, files: Sequence[Mapping[str, Any]]) -> tuple[Content, list[str]]:
        """What a commit's objects hold, and in what they differ from what it says."""
        content, flaws = {}, []
        for file in files:
            held = self._destination.held(file["object"])
            if held is None:
                flaws.append(f"{file['object']} is missing")
                continue
            size, sha256, xxh128 = held
            if (size, xxh128) != (file["size"], file["xxh128"]):
                wanted = f"{file['size']} bytes with {file['xxh128']}"
                flaws.append(f"{file['object']} has {size} bytes with {xxh128}, not {wanted}")
            content[file["name"]] = (size, sha256)
        return content, flaws

    def _loaded(self, content: Content) -> int | None:
        """The step of a content that the library accepts, None where it does not."""
        with tempfile.TemporaryDirectory() as folder:
            for name in content:
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(self._destination.by_digest(content[name]))
            try:
                step = self._load(Path(folder))
            except (RuntimeError, ValueError):
                return None
        begun = {event["step"] for event in self._ledger.events() if event["event"] == "begin"}
        return step if step in begun else None

    def _kept(self, listed: Mapping[int, str]) -> list[Violation]:
        """Commits that were whole and have gone; each is reported once."""
        gone = [number for number in (*self._good, *self._torn) if number not in listed]
        for number in gone:
            self._good.pop(number, None)
            self._torn.pop(number, None)
        return [Violation("lost", f"commit {number} has gone") for number in gone]

    def _claims(self, events: Sequence[Mapping[str, Any]]) -> list[Violation]:
        """What an agent called durable to its trainer, and is not."""
        fresh, self._reported = events[self._reported :], len(events)
        return [
            violation
            for event in fresh
            if event["event"] == "durable"
            for violation in self.claimed(event["step"], "the agent said so to its trainer")
        ]

    def claimed(self, step: int, who: str, *, sure: bool = False) -> list[Violation]:
        """What of the last save of a step is not committed, where somebody said that all of it is.

        Args:
            step: The save's.
            who: Said so, for people.
            sure: They said that it is sure, too.
        """
        events = self._ledger.events()
        saves = [
            number
            for number, event in enumerate(events)
            if event["event"] == "finish" and event["step"] == step
        ]
        if not saves:
            return []
        committed = [good.content for good in (self._sure() if sure else self._good.values())]
        later, state = events[saves[-1] + 1 :], "sure" if sure else "committed"
        missing = [
            held
            for held in contents(events[saves[-1]])
            if held not in committed and not held.keys() & self._replaced(held, later)
        ]
        return [
            Violation("claimed", f"{sorted(held)} of step {step} is not {state}, and {who}")
            for held in missing
        ]

    def _replaced(self, held: Content, later: Sequence[Mapping[str, Any]]) -> set[str]:
        """The files that a save has replaced whose trainer died before it could note its end.

        Args:
            held: What the save before left.
            later: What was noted after it.
        """
        begun = next((event["step"] for event in later if event["event"] == "begin"), None)
        whole = next((event for event in later if event["event"] in {"finish", "resumed"}), None)
        if begun is None or (whole is not None and whole["event"] == "finish"):
            return set()
        saved = all_saved(self._ledger.events())
        torn = {name for one in self._torn.values() for name, _ in one.content.items() - saved}
        # An earlier pod may have written the same bytes: what is next to files of the save before is newer.
        mixed = (one.content.items() for one in self._torn.values() if one.content.items() & held.items())
        torn |= {name for content in mixed for name, _ in content - held.items()}
        return torn | {name for good in self._good.values() if good.step == begun for name in good.content}

    def left(self, step: int) -> list[Violation]:
        """What a drain with all the time that it needs has left behind of the last save."""
        missing = self.claimed(step, "its pod was deleted in peace")
        return [Violation("left", violation.what) for violation in missing]

    def resumed(self, before: Good | None, event: Mapping[str, Any]) -> list[Violation]:
        """See `faults.resumption.resumed`."""
        return resumed(self._sure(), before, event)
