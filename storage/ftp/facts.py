"""What an FTP server says about files: facts of MLST and MLSD (RFC 3659), and lines of LIST. Pure.

No format is defined for LIST. Nearly all servers write what `ls -l` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from podferry.contract.errors import Corrupt, InvalidSpec

LINE = re.compile(r"(\S)\S{9}\S*\s+\d+\s+\S+\s+\S+\s+(\d{1,18})\s+\S+\s+\d+\s+[\d:]+ (.*)")
"""Kind, size and name: exactly one space is before the name."""
DOS_LINE = re.compile(r"\d\d-\d\d-\d\d(?:\d\d)?\s+\d\d:\d\d(?:AM|PM)\s+(?:(<DIR>) {10}|(\d{1,18}) )(.*)")
"""As Microsoft's servers write it by default."""
MAX_DIGITS = 19
"""A size with as many is not real: an exabyte has them."""
ARROW = " -> "
KINDS = {"d": "directory", "-": "file", "l": "link"}
"""By the first letter of a line; others are devices and sockets."""
FACT_KINDS = {"dir": "directory", "file": "file"}


class Facts(NamedTuple):
    """About a name.

    Attributes:
        name: Without its directory.
        kind: `file`, `directory`, `link` or something else.
        size: Bytes, or None if unknown.
        modified: When, `YYYYMMDDHHMMSS` with a fraction perhaps; empty if unknown.
    """

    name: str
    kind: str
    size: int | None = None
    modified: str = ""


def read_facts(line: str) -> Facts:
    """A line of MLSD or MLST: facts, a space, and the name."""
    text, _, name = line.removeprefix(" ").partition(" ")
    facts = dict(_pairs(text))
    kind, size = facts.get("type", "").lower(), facts.get("size", "")
    known = FACT_KINDS.get(kind, "link" if "link" in kind else kind)
    is_size = size.isdecimal() and len(size) < MAX_DIGITS
    return Facts(name, known, int(size) if is_size else None, facts.get("modify", ""))


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for fact in text.split(";"):
        name, _, value = fact.partition("=")
        yield name.strip().lower(), value


def read_line(line: str) -> Facts | None:
    """A line of LIST; None for one that names nothing. The name of a link has its target: see `read_lines`.

    Raises:
        InvalidSpec: Its format is unknown.
    """
    found, dos = LINE.fullmatch(line), DOS_LINE.fullmatch(line)
    if found is not None:
        kind = KINDS.get(found[1], "other")
        return Facts(found[3], kind, int(found[2]))
    if dos is not None:
        return Facts(dos[3], "directory") if dos[1] else Facts(dos[3], "file", int(dos[2]))
    if not line.strip() or line.startswith("total "):
        return None
    raise InvalidSpec.of("the FTP server lists in an unknown format", ascii(line[:100]), "Use sftp://")


def read_lines(lines: Iterable[str]) -> list[Facts]:
    """The lines of LIST, links without their targets.

    A link is shown as `name -> target`, and a name may have an arrow of its own: no two lines have one name.

    Raises:
        InvalidSpec: The format of a line is unknown.
        Corrupt: What the name of a link is cannot be found out.
    """
    found = list(dict.fromkeys(facts for line in lines if (facts := read_line(line)) is not None))
    taken = {facts.name for facts in found if facts.kind != "link"}
    names: dict[str, str] = {}
    # First those with one arrow, whose names are certain.
    for text in sorted((facts.name for facts in found if facts.kind == "link"), key=_arrows):
        names[text] = _link_name(text, taken)
        taken.add(names[text])
    return [f._replace(name=names[f.name]) if f.kind == "link" else f for f in found]


def _arrows(text: str) -> int:
    return text.count(ARROW)


def _link_name(text: str, taken: set[str]) -> str:
    parts = text.split(ARROW)
    # The last one is for servers that do not show the target.
    possible = (ARROW.join(parts[:count]) for count in range(1, len(parts) + 1))
    name = next((name for name in possible if name not in taken), "")
    if not name:
        remedy = "Rename links whose names have ` -> ` in them, or use sftp://"
        raise Corrupt.of("the FTP server lists two files of one name", ascii(text[:200]), remedy)
    return name


def tag_of(size: int, modified: str) -> str:
    """A file's tag: its time of modification, if known, and its size."""
    return f"{modified.partition('.')[0]}-{size:x}" if modified else f"{size:x}"
