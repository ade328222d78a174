"""Names of objects: which ones are valid, and those of temporary files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from podferry.contract.errors import InvalidSpec
from podferry.contract.file_names import name_problem

LAST_CHARACTER = "\U0010ffff"
"""Behind a directory's slash it sorts after everything in the directory."""
TEMPORARY_NAME = re.compile(r"\.podferry-[0-9a-f]{16}\.tmp")


def checked_name(name: str) -> str:
    """The name, if it is a plain relative path.

    Raises:
        InvalidSpec: It points outside the store, or cannot be a file name.
    """
    problem = name_problem(name)
    if problem:
        raise InvalidSpec(problem)
    return name


def join(*parts: str) -> str:
    """The non-empty parts, joined by slashes."""
    return "/".join(part for part in parts if part)


def temporary_name(name: str, token: str = "") -> str:
    """A name in the same directory, for writing and then renaming to `name`; listings skip it.

    `token` is 16 hexadecimal digits that make it unique; random by default.
    """
    parent, _, _ = name.rpartition("/")
    return join(parent, f".podferry-{token or os.urandom(8).hex()}.tmp")


def is_temporary(name: str) -> bool:
    """Whether `temporary_name` made the name."""
    return TEMPORARY_NAME.fullmatch(name.rpartition("/")[2]) is not None


def child_names(objects: Iterable[str], directories: Iterable[str]) -> list[str]:
    """What `Store.children` returns of the objects in a directory, and of the directories relative to it."""
    return sorted([*(name.rpartition("/")[2] for name in objects), *(f"{name}/" for name in directories)])
