"""Names of objects: which a store takes, and those of files that are not whole yet."""

from __future__ import annotations

import re
import secrets

from podferry.contract.errors import InvalidSpec
from podferry.contract.file_names import name_problem

TEMPORARY_NAME = re.compile(r"\.podferry-[0-9a-f]{16}\.tmp")


def checked_name(name: str) -> str:
    """The name, where it is a plain relative path.

    Raises:
        InvalidSpec: It could leave the store, or holds what no file may be called.
    """
    problem = name_problem(name)
    if problem:
        raise InvalidSpec(problem)
    return name


def join(*parts: str) -> str:
    """The parts that are not empty, with slashes between."""
    return "/".join(part for part in parts if part)


def temporary_name(name: str, token: str = "") -> str:
    """A name beside `name`, so that renaming stays in one directory; no listing yields it.

    Args:
        name: What it will be called.
        token: 16 hexadecimal digits that tell it from others; drawn where none are given.
    """
    parent, _, _ = name.rpartition("/")
    return join(parent, f".podferry-{token or secrets.token_hex(8)}.tmp")


def is_temporary(name: str) -> bool:
    """Whether the name is one that `temporary_name` gives."""
    return TEMPORARY_NAME.fullmatch(name.rpartition("/")[2]) is not None
