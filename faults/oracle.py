"""Looks at the destination from outside, with nothing of podferry's own reading.

What a commit says is taken from its JSON, objects from the store behind the proxy, what is true from the
trainer's ledger. Where the ledger does not know a content, since its trainer was killed between the end of a
save and its note, the real library is asked whether it can be loaded.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import obstore
import xxhash
from obstore.store import ObjectStore

from faults.ledger import Content, Good, Ledger, Violation, contents

SEQUENCE = re.compile(r"\.podferry/commits/(\d+)\.json$")

POINTERS = frozenset({"checkpoint", "latest"})
"""What a trainer rewrites to name its newest save; all data of the older one is elsewhere."""


class Oracle:
    """Knows what was whole before, and says what is broken now.

    Args:
        store: The destination's store, behind the proxy's back.
        lineage: Where in it: a prefix without a slash at its end.
        ledger: What the trainers noted.
        load: Asks the real library for the step of the checkpoint in a directory; raises if it cannot.
    """

    def __init__(self, store: ObjectStore, lineage: str, ledger: Ledger, load: Callable[[Path], int]) -> None:
        self._store, self._lineage, self._ledger, self._load = store, lineage, ledger, load
        self._good: dict[int, Good] = {}
        self._bad: set[int] = set()
        self._digests: dict[str, tuple[int, str, str]] = {}
        self._reported = 0

    @property
    def newest(self) -> Good | None:
        """The last commit that was found whole."""
        return self._good[max(self._good)] if self._good else None

    @property
    def commits(self) -> int:
        """How many were found whole."""
        return len(self._good)

    def look(self, *, reread: bool = False) -> list[Violation]:
        """Check every commit that is there, and that those that were there still are.

        Args:
            reread: Read every object once more instead of trusting what was read before.
        """
        if reread:
            self._digests.clear()
        # What was called durable by now must be in the list that is read after it.
        events = self._ledger.events()
        listed = self._listed()
        finished = [event for event in self._ledger.events() if event["event"] == "finish"]
        found = [
            violation
            for number in sorted(listed)
            for violation in self._commit(number, listed[number], finished)
        ]
        found += self._kept(listed)
        found += self._claims(events)
        return found

    def _listed(self) -> dict[int, str]:
        names = [
            meta["path"]
            for page in obstore.list(self._store, f"{self._lineage}/.podferry/commits")
            for meta in page
        ]
        numbered = ((SEQUENCE.search(name), name) for name in names)
        return {int(match[1]): name for match, name in numbered if match}

    def _read(self, name: str) -> bytes | None:
        try:
            return bytes(obstore.get(self._store, name).bytes())
        except FileNotFoundError:
            return None

    def _commit(self, number: int, name: str, finished: Sequence[Mapping[str, Any]]) -> list[Violation]:
        raw = self._read(name)
        known = self._good.get(number)
        if raw is None or number in self._bad:
            return []
        try:
            commit = json.loads(raw)
            content, flaws = self._content(commit["files"])
        except (ValueError, LookupError, TypeError) as error:
            flaws, content, commit = [f"it is no commit: {error!r}"], {}, {}
        if known is not None and known.raw != raw:
            flaws.append("another commit has taken its place")
        elif not flaws and known is None:
            step = self._step(content, finished)
            if step is None:
                flaws = ["its content is no save that was finished: " + ", ".join(sorted(content))]
            else:
                self._good[number] = Good(number, step, raw, commit["writer"], content)
        if not flaws:
            return []
        self._bad.add(number)
        figure = "lost" if known is not None else "wrong"
        return [Violation(figure, f"commit {number} ({commit.get('checkpoint')}): {'; '.join(flaws)}")]

    def _content(self, files: Sequence[Mapping[str, Any]]) -> tuple[Content, list[str]]:
        """What a commit's objects hold, and in what they differ from what it says."""
        content, flaws = {}, []
        for file in files:
            held = self._held(f"{self._lineage}/{file['object']}")
            if held is None:
                flaws.append(f"{file['object']} is missing")
                continue
            size, sha256, xxh128 = held
            if (size, xxh128) != (file["size"], file["xxh128"]):
                wanted = f"{file['size']} bytes with {file['xxh128']}"
                flaws.append(f"{file['object']} has {size} bytes with {xxh128}, not {wanted}")
            content[file["name"]] = (size, sha256)
        return content, flaws

    def _held(self, name: str) -> tuple[int, str, str] | None:
        if name not in self._digests:
            data = self._read(name)
            if data is None:
                return None
            self._digests[name] = (
                len(data),
                hashlib.sha256(data).hexdigest(),
                xxhash.xxh3_128_hexdigest(data),
            )
        return self._digests[name]

    def _step(self, content: Content, finished: Sequence[Mapping[str, Any]]) -> int | None:
        """The step whose finished save a content is, None where it is none's."""
        for event in finished:
            held = contents(event)
            if content in held or content in map(_without_pointers, held):
                return int(event["step"])
        with tempfile.TemporaryDirectory() as folder:
            for name in content:
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(self._by_digest(content[name]))
            try:
                step = self._load(Path(folder))
            except (RuntimeError, ValueError):
                return None
        begun = {event["step"] for event in self._ledger.events() if event["event"] == "begin"}
        return step if step in begun else None

    def _by_digest(self, held: tuple[int, str]) -> bytes:
        name = next(name for name, (size, sha256, _) in self._digests.items() if (size, sha256) == held)
        data = self._read(name)
        return data if data is not None else b""

    def _kept(self, listed: Mapping[int, str]) -> list[Violation]:
        """Commits that were whole and have gone; each is reported once."""
        gone = [number for number in self._good if number not in listed]
        for number in gone:
            del self._good[number]
        return [Violation("lost", f"commit {number} was whole, and has gone") for number in gone]

    def _claims(self, events: Sequence[Mapping[str, Any]]) -> list[Violation]:
        """What an agent called durable to its trainer, and is not."""
        fresh, self._reported = events[self._reported :], len(events)
        return [
            violation
            for event in fresh
            if event["event"] == "durable"
            for violation in self.claimed(event["step"], "the agent said so to its trainer")
        ]

    def claimed(self, step: int, who: str) -> list[Violation]:
        """What of the last save of a step is not committed, where somebody said that all of it is."""
        events = self._ledger.events()
        saves = [
            number
            for number, event in enumerate(events)
            if event["event"] == "finish" and event["step"] == step
        ]
        if not saves:
            return []
        committed = [good.content for good in self._good.values()]
        replaced = self._replaced(events[saves[-1] + 1 :])
        missing = [
            held
            for held in contents(events[saves[-1]])
            if held not in committed and not held.keys() <= replaced
        ]
        return [
            Violation("claimed", f"{sorted(held)} of step {step} is not committed, and {who}")
            for held in missing
        ]

    def _replaced(self, later: Sequence[Mapping[str, Any]]) -> set[str]:
        """The files of a save that was whole, though its trainer died before it could note that.

        Args:
            later: What was noted after the save before.
        """
        begun = next((event["step"] for event in later if event["event"] == "begin"), None)
        whole = next((event for event in later if event["event"] in {"finish", "resumed"}), None)
        if begun is None or (whole is not None and whole["event"] == "finish"):
            return set()
        return {name for good in self._good.values() if good.step == begun for name in good.content}

    def left(self, step: int) -> list[Violation]:
        """What a drain with all the time that it needs has left behind of the last save."""
        missing = self.claimed(step, "its pod was deleted in peace")
        return [Violation("left", violation.what) for violation in missing]

    def resumed(self, before: Good | None, event: Mapping[str, Any]) -> list[Violation]:
        """What is wrong with what a trainer resumed from.

        Args:
            before: The newest commit that was whole before its pod started.
            event: The trainer's own note.
        """
        if event["event"] == "broken":
            return [
                Violation("wrong", f"restored, and not what was written: {event['restored']}: {event['why']}")
            ]
        if before is None:
            return []
        fitting = {good.step for good in self._good.values() if good.sequence >= before.sequence}
        if event["step"] in fitting:
            return []
        what = (
            f"resumed from step {event['step']}, and commit {before.sequence} of step {before.step} was whole"
        )
        return [Violation("lost", what)]


def _without_pointers(held: Content) -> Content:
    """A save as it is once the trainer's own pointer names the next one, unseen by any worker."""
    return {name: seen for name, seen in held.items() if name not in POINTERS}
