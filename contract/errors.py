"""The error tree: whether a retry can help is the type, never the text.

    FerryError                  everything that podferry raises deliberately
    ├── PermanentError          a retry cannot help
    │   ├── InvalidSpec         an annotation, an argument or a document is invalid
    │   ├── Refused             the plan fails in advance: no space, directory taken, destination closed
    │   ├── NotFound            no such object
    │   │   ├── BucketNotFound  no such bucket, container or root
    │   │   └── EmptyDataset    nothing under the prefix
    │   ├── AlreadyExists       a conditional create found the name taken
    │   ├── Superseded          a newer checkpoint is committed, or a newer attempt has started
    │   ├── Fenced              another agent has taken this one's place
    │   ├── Changed             an object, a file or a dataset differs from when it was listed
    │   ├── Corrupt             bytes do not match their checksum, size or format
    │   ├── AccessDenied        the store refuses
    │   │   └── CredentialsMissing   there are no credentials to send
    │   ├── UnknownScheme       no engine is installed for the URI
    │   └── FormatTooNew        written by a later podferry
    └── TemporaryError          the same call may succeed later
        ├── Unavailable         5xx, resets, time-outs
        └── Throttled           the store is rate limiting (429, 503 SlowDown)

Each error carries `Problem`s: what is wrong, the measured value, the remedy. Vendors' exceptions are
translated into this tree in one place (`podferry.storage.errors.translate`) and chained with `from`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

import msgspec


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """One problem, as the user reads it.

    Attributes:
        what: What is wrong, as a sentence without a full stop.
        measured: The value found (`14.2 GiB in 1,797 files`), or empty.
        remedy: What to do, as a sentence without a full stop.
    """

    what: str
    measured: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        measured = f" ({self.measured})" if self.measured else ""
        end = "" if self.remedy.endswith("?") else "."
        remedy = f" {self.remedy}{end}" if self.remedy else ""
        return printable_text(f"{self.what}{measured}.{remedy}")


def printable_text(text: str) -> str:
    """The text with escapes for what would steer a terminal, or is no text: names come from servers."""
    if text.isprintable():
        return text
    kept = (each if each.isprintable() or each == "\n" else ascii(each)[1:-1] for each in text)
    return "".join(kept)


class FerryError(Exception):
    """The root of the tree. `problems` has everything that is wrong, in order of appearance."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(*problems)
        self.problems = problems

    @classmethod
    def of(cls, what: str, measured: str = "", remedy: str = "") -> Self:
        """An error of one problem."""
        return cls(Problem(what, measured, remedy))

    @classmethod
    def raise_any(cls, problems: Iterable[Problem]) -> None:
        """Raise one error with all `problems`, or return if there are none."""
        found = tuple(problems)
        if found:
            raise cls(*found)

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


class PermanentError(FerryError):
    """A retry cannot help."""


class InvalidSpec(PermanentError):
    """The user's input is invalid as written."""


class Refused(PermanentError):
    """A plan that would fail later is refused before any transfer."""


class NotFound(PermanentError):
    """The store has no object of that name."""


class BucketNotFound(NotFound):
    """The store has no bucket, container or root directory of that name."""


class EmptyDataset(NotFound):
    """There is nothing under the dataset's prefix."""


class AlreadyExists(PermanentError):
    """A conditional create found the name taken. Nothing was written."""


class Superseded(PermanentError):
    """A checkpoint is too late: a newer one is committed, or its writers have restarted."""


class Fenced(PermanentError):
    """Another agent has replaced this one, which must never write there again."""


class Changed(PermanentError):
    """Something has changed since it was listed."""


class Corrupt(PermanentError):
    """Bytes do not match their checksum, size or format."""


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
        delay: Seconds to wait, as the store requests, or None.
    """

    delay: float | None = None


class Unavailable(TemporaryError):
    """The store answered with a server error, or not at all."""


class Throttled(TemporaryError):
    """The store is rate limiting (429, 503 SlowDown)."""
