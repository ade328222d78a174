"""Selects files of a dataset: globs over relative names, and a pod's even shard of the selection.

A glob is written as in a `.gitignore`: `*` and `?` stay within one part of a name, `**` spans directories,
`[a-z]` and `[!a-z]` match one character, and a backslash makes the next character literal. A glob without a
`/` matches the last part of a name in every directory; a glob with a `/` starts at the dataset's root, also
if it begins with `/`. A glob that ends with `/` matches everything below that directory.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Sequence

from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.lazy_pattern import lazy_pattern
from podferry.contract.manifest import Entry
from podferry.contract.spec import Shard

GLOB_IN_LIST = lazy_pattern(r"(?:\\.|[^\\,\s])+|\\", re.DOTALL)
"""One glob of a list: a backslash makes the comma or space after it part of the name."""
ESCAPED_OR_SEPARATOR = lazy_pattern(r"\\.|[,\s]", re.DOTALL)
SET_MEMBER = r"(?:\\.|[^\]\\])"
TOKEN = lazy_pattern(
    rf"\\(?P<literal>.)|(?P<star>\*+)|\[(?P<but>!?+)(?P<set>(?:\]|{SET_MEMBER}){SET_MEMBER}*)\]|(?P<plain>.)",
    re.DOTALL,
)
"""The tokens of one part of a glob. A `]` that is first in brackets is a member of the set."""
DIRECTORIES = "(?:[^/]+/)*"
RANGE = lazy_pattern(r"\\?(?P<low>.)(?:-\\?(?P<high>.))?", re.DOTALL)


def parse_globs(text: str) -> tuple[str, ...]:
    """Parse a list of globs, separated by commas, spaces or lines.

    Raises:
        InvalidSpec: No glob, or all globs that do not mean what they seem to.
    """
    globs = tuple(GLOB_IN_LIST.findall(text))
    if not globs:
        raise InvalidSpec.of("no glob given", repr(text), "Write globs such as *.jpg, or leave it out")
    InvalidSpec.raise_any(problem for glob in globs if (problem := glob_problem(glob)))
    return globs


def list_of_globs(globs: Iterable[str]) -> str:
    """Join globs to a text for `parse_globs`; each stays one glob, whatever blanks and commas it has."""
    return "\n".join(ESCAPED_OR_SEPARATOR.sub(_escaped, glob.strip()) for glob in globs)


def _escaped(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith("\\") else f"\\{match[0]}"


def glob_problem(glob: str) -> Problem | None:
    """Why a glob cannot match what its author means, or None if it can."""
    parts = _parts(glob)
    tokens = [match for part in parts for match in TOKEN.finditer(part)]
    plain = [match["plain"] for match in tokens]
    backwards = any(span["high"] and span["low"] > span["high"] for one in tokens for span in _ranges(one))
    nowhere = any(part in {"", ".", ".."} for part in parts)
    checks = (
        (glob.startswith("!"), "a glob cannot be negated", "Write it in exclude, or \\! for a literal !"),
        ("{" in plain, "braces are not expanded", "Write each: *.jpg, *.png; or \\{ for a literal {"),
        ("[" in plain, "a bracket is not closed", "Write [abc], or \\[ for a literal ["),
        (backwards, "a range in brackets runs backwards", "Write the lower character first: [a-z]"),
        ("\\" in plain, "a backslash has no character after it", "Write \\\\ for a literal backslash"),
        (nowhere, "the glob cannot match a relative name", "Write names without '.', '..' and '//'"),
    )
    return next((Problem(what, repr(glob), remedy) for wrong, what, remedy in checks if wrong), None)


def select(entries: Iterable[Entry], include: Sequence[str], exclude: Sequence[str]) -> list[Entry]:
    """The entries, in their order, that match `include`, if any is given, and do not match `exclude`."""
    wanted, unwanted = _any_of(include), _any_of(exclude)
    return [
        entry
        for entry in entries
        if (not include or wanted.fullmatch(entry.name)) and not (exclude and unwanted.fullmatch(entry.name))
    ]


def shard_of(entries: Iterable[Entry], shard: Shard) -> list[Entry]:
    """One pod's shard, sorted by name: independent of the order of `entries`, so that all pods agree.

    Files are assigned from the largest down, each to the shard with the fewest bytes, then the fewest files:
    no two shards differ by more than the largest file; one is empty only with fewer files than pods.
    """
    loads = [(0, 0, rank) for rank in range(shard.count)]
    part = []
    for entry in sorted(entries, key=lambda entry: (-entry.size, entry.name)):
        load, files, rank = loads[0]
        heapq.heapreplace(loads, (load + entry.size, files + 1, rank))
        if rank == shard.rank:
            part.append(entry)
    return sorted(part)


def _any_of(globs: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(_expression, globs)), re.DOTALL)


def _parts(glob: str) -> list[str]:
    return glob.removeprefix("/").removesuffix("/").split("/")


def _expression(glob: str) -> str:
    """A glob as a regular expression over full names."""
    parts = _parts(glob)
    anchored = glob.startswith("/") or len(parts) > 1
    found = "" if anchored else DIRECTORIES
    for index, part in enumerate(parts, 1):
        last = index == len(parts)
        if part == "**" and anchored:
            found += f"{DIRECTORIES}[^/]+" if last else DIRECTORIES
        else:
            found += _part(part) + ("" if last else "/")
    return f"{found}/.+" if glob.endswith("/") else found


def _part(text: str) -> str:
    """One part between slashes, as a regular expression.

    Each star but the last matches as little as possible and never backtracks, since the next can match the
    rest: matching costs at most the name's length for each star, even for hostile globs.
    """
    fixed = [""]
    for match in TOKEN.finditer(text):
        if match["star"]:
            fixed.append("")
        else:
            fixed[-1] += _character(match)
    first, *others = fixed
    if not others:
        return first
    return first + "".join(f"(?>[^/]*?{one})" for one in others[:-1]) + f"[^/]*{others[-1]}"


def _character(match: re.Match[str]) -> str:
    """The expression for one character of a name."""
    if match["set"] is not None:
        members = "".join(
            re.escape(span["low"]) + (f"-{re.escape(span['high'])}" if span["high"] else "")
            for span in _ranges(match)
        )
        return f"[^/{members}]" if match["but"] else f"(?!/)[{members}]"
    if match["plain"] == "?":
        return "[^/]"
    return re.escape(match["literal"] or match["plain"])


def _ranges(match: re.Match[str]) -> Iterator[re.Match[str]]:
    return RANGE.finditer(match["set"] or "")
