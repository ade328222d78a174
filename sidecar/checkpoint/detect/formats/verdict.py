"""What a file's own format shows."""

from __future__ import annotations

from typing import NamedTuple

Members = tuple[tuple[str, int], ...]


class FormatVerdict(NamedTuple):
    """What a file's own format shows. Without a defect and not conclusive, it shows nothing either way.

    Attributes:
        defect: Why the file is incomplete for certain, or None.
        conclusive: Without a defect, the file is complete, even if an exception interrupted its writer, which
            then closed the file properly.
        members: What the file contains, where its format cannot show that one of them is missing: names, and
            sizes in bytes of those that may be cut short, 0 for those that are whole for certain. An
            interrupted save has others than the save before it. Of a conclusive file: the number of pickles.
    """

    defect: str | None
    conclusive: bool
    members: Members = ()


COMPLETE = FormatVerdict(None, conclusive=True)
INCONCLUSIVE = FormatVerdict(None, conclusive=False)


class Inconclusive(Exception):
    """The file's format does not show whether it is complete."""


class Torn(Exception):
    """The file is incomplete for certain; the message says why, for people."""


def incomplete(reason: str) -> FormatVerdict:
    """The verdict on a file that is incomplete for certain."""
    return FormatVerdict(reason, conclusive=True)


def unproven(members: Members) -> FormatVerdict:
    """The verdict on a file without a defect that may lack a member."""
    return FormatVerdict(None, conclusive=False, members=members)
