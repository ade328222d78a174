"""What a scheme adds to the benchmark of sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Served:
    """A running server with all sets.

    Attributes:
        server: Its name and version, for people.
        uri: Of the directory with the sets, in podferry's form, without a slash at its end.
        peer: The words with which the usual tool downloads a set, by its name, to a directory that does not
            exist; the files must be directly below it.
        environment: Variables for podferry and the tool, such as credentials.
        options: More words for `podferry dataset get`.
    """

    server: str
    uri: str
    peer: Callable[[str, Path], Sequence[str]]
    environment: Mapping[str, str] = field(default_factory=dict)
    options: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """A row.

    Attributes:
        peer: The usual tool and how it is called, for people.
        serve: Starts a server of the first folder's sets; the second folder, empty and in memory, is its own.
            A server that cannot serve a folder gets the files by its vendor's tool.
    """

    peer: str
    serve: Callable[[Path, Path], AbstractContextManager[Served]]
