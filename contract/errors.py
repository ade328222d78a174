"""What can go wrong, as types: whether trying again can help is the type, never the text.

    FerryError                  everything that podferry raises on purpose
    ├── PermanentError          trying again cannot help
    │   ├── InvalidSpec         an annotation, an argument or a document is wrong
    │   ├── Refused             the plan: it does not fit, the stage is taken, the destination is closed
    │   ├── NotFound            no such object
    │   │   ├── BucketNotFound  no such bucket, container or root
    │   │   └── EmptyDataset    nothing under the prefix
    │   ├── AlreadyExists       a conditional create found the name taken
    │   ├── Superseded          a newer checkpoint is committed, or a newer attempt has begun
    │   ├── Fenced              another agent has taken this one's place
    │   ├── Changed             an object, a file or a dataset is no longer the one that was listed
    │   ├── Corrupt             bytes are not those that were promised
    │   ├── AccessDenied        the store refuses
    │   │   └── CredentialsMissing   there was nothing to show it
    │   ├── UnknownScheme       no engine is installed for the URI
    │   └── FormatTooNew        written by a later podferry
    └── TemporaryError          the same call may succeed later
        ├── Unavailable         5xx, resets, time-outs
        └── Throttled           the store asked for patience

Each error carries `Problem`s: what is wrong, the measured value, the remedy. Vendors' exceptions are
translated into this tree in one place (`podferry.storage.errors.translate`) and chained with `from`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

import msgspec


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that is wrong, as its user reads it.

    Attributes:
        what: The sentence that says what is wrong, without a full stop.
        measured: The value that was found (`14.2 GiB in 1,797 files`), empty where there is none.
        remedy: What to do about it, as a sentence without a full stop.
    """

    what: str
    measured: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        measured = f" ({self.measured})" if self.measured else ""
        end = "" if self.remedy.endswith("?") else "."
        remedy = f" {self.remedy}{end}" if self.remedy else ""
        return f"{self.what}{measured}.{remedy}"


class FerryError(Exception):
    """The root of the tree. `problems` holds everything that is wrong, in order of appearance."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(*problems)
        self.problems = problems

    @classmethod
    def of(cls, what: str, measured: str = "", remedy: str = "") -> Self:
        """An error of one problem."""
        return cls(Problem(what, measured, remedy))

    @classmethod
    def raise_any(cls, problems: Iterable[Problem]) -> None:
        """Raise one error that holds all `problems`, or return where there is none."""
        found = tuple(problems)
        if found:
            raise cls(*found)

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


class PermanentError(FerryError):
    """Trying again cannot help."""


class InvalidSpec(PermanentError):
    """What the user wrote cannot be carried out as written."""


class Refused(PermanentError):
    """A plan that would fail later is refused before a byte moves."""


class NotFound(PermanentError):
    """The store has no object of that name."""


class BucketNotFound(NotFound):
    """The store has no bucket, container or root directory of that name."""


class EmptyDataset(NotFound):
    """Nothing lies under the dataset's prefix."""


class AlreadyExists(PermanentError):
    """A conditional create found the name taken. Nothing was written."""


class Superseded(PermanentError):
    """A checkpoint comes too late: a newer one is committed, or those who wrote it have begun anew."""


class Fenced(PermanentError):
    """Another agent writes in this one's place: this one must never write there again."""


class Changed(PermanentError):
    """Something is no longer what it was when it was listed."""


class Corrupt(PermanentError):
    """Bytes are not those that a checksum, a size or a format promised."""


class AccessDenied(PermanentError):
    """The store knows the caller, or its absence, and refuses."""


class CredentialsMissing(AccessDenied):
    """There are no credentials to show the store."""


class UnknownScheme(PermanentError):
    """No installed engine opens URIs of this scheme."""


class FormatTooNew(PermanentError):
    """A document was written by a later podferry, in a format that this one cannot read."""


class TemporaryError(FerryError):
    """The same call may succeed later.

    Attributes:
        delay: Seconds that the store asked to wait, None where it did not say.
    """

    delay: float | None = None


class Unavailable(TemporaryError):
    """The store answered with a server error, or not at all."""


class Throttled(TemporaryError):
    """The store asks for fewer requests."""
