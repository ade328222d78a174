"""Which files of a dataset come: globs over relative names, and a pod's even part of what they leave.

A glob is written as in a `.gitignore`: `*` and `?` stay within one part of a name, `**` spans directories,
`[a-z]` and `[!a-z]` stand for one character, and a backslash takes the next character as it is. A glob
without a `/` is matched with the last part of a name in every directory; one with a `/` starts at the
dataset's own directory, and so does one that begins with `/`. One that ends with `/` stands for all below
that directory.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Sequence

from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.manifest import Entry
from podferry.contract.spec import Shard

GLOB_IN_LIST = re.compile(r"(?:\\.|[^\\,\s])+|\\", re.DOTALL)
"""One glob of a list: a backslash keeps the comma or the space behind it in the name."""
SET_MEMBER = r"(?:\\.|[^\]\\])"
TOKEN = re.compile(
    rf"\\(?P<literal>.)|(?P<star>\*+)|\[(?P<but>!?+)(?P<set>(?:\]|{SET_MEMBER}){SET_MEMBER}*)\]|(?P<plain>.)",
    re.DOTALL,
)
"""What a part of a name is made of. A `]` that comes first in brackets is a member of the set."""
DIRECTORIES = "(?:[^/]+/)*"
RANGE = re.compile(r"\\?(?P<low>.)(?:-\\?(?P<high>.))?", re.DOTALL)


def parse_globs(text: str) -> tuple[str, ...]:
    """A list of globs, separated by commas, spaces or lines.

    Raises:
        InvalidSpec: Nothing in it, or globs that mean something else than they seem to, all at once.
    """
    globs = tuple(GLOB_IN_LIST.findall(text))
    if not globs:
        raise InvalidSpec.of("no glob in it", repr(text), "Write globs such as *.jpg, or leave it out")
    InvalidSpec.raise_any(problem for glob in globs if (problem := glob_problem(glob)))
    return globs


def glob_problem(glob: str) -> Problem | None:
    """Why a glob could never match what its writer means, None where it can."""
    parts = _parts(glob)
    tokens = [match for part in parts for match in TOKEN.finditer(part)]
    plain = [match["plain"] for match in tokens]
    backwards = any(span["high"] and span["low"] > span["high"] for one in tokens for span in _ranges(one))
    nowhere = any(part in {"", ".", ".."} for part in parts)
    checks = (
        (glob.startswith("!"), "a glob is not negated here", "Write it in exclude, or \\! for a literal one"),
        ("{" in plain, "braces are not expanded", "Write each: *.jpg, *.png; or \\{ for a literal one"),
        ("[" in plain, "a bracket is not closed", "Write [abc], or \\[ for a literal one"),
        (backwards, "a range in brackets runs backwards", "Write the lower character first: [a-z]"),
        ("\\" in plain, "a backslash has no character after it", "Write \\\\ for a literal one"),
        (nowhere, "no relative name matches the glob", "Write names without '.', '..' and '//'"),
    )
    return next((Problem(what, repr(glob), remedy) for wrong, what, remedy in checks if wrong), None)


def select(entries: Iterable[Entry], include: Sequence[str], exclude: Sequence[str]) -> list[Entry]:
    """The entries that one of `include` matches, or all where there is none, and none of `exclude`.

    Args:
        entries: In any order, which is kept.
        include: Globs, as `parse_globs` lets them through.
        exclude: The same; it goes before `include`.
    """
    wanted, unwanted = _any_of(include), _any_of(exclude)
    return [
        entry
        for entry in entries
        if (not include or wanted.fullmatch(entry.name)) and not (exclude and unwanted.fullmatch(entry.name))
    ]


def shard_of(entries: Iterable[Entry], shard: Shard) -> list[Entry]:
    """One pod's part, sorted by name: the same for every order of `entries`, so that all pods agree.

    The largest file goes first, each to the part with the fewest bytes, of those to the one with the fewest
    files: no two parts differ by more than the largest file. Parts are empty only where there are fewer files
    than pods.
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
    """A glob as a regular expression over whole names."""
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
    """One part between slashes.

    Each star but the last takes as little as it can and never comes back to it, since the next can take the
    rest: a name costs no more than its length for each star, whoever chose it.
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
    """What stands for one character of a name."""
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
