"""Builds a minimal JSON patch (RFC 6902) from edits on plain JSON.

Typed pod models drop fields that they do not know, and so does a patch that replaces entire lists. A `Draft`
only adds what is missing and replaces single values, so everything else is preserved.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

Path = tuple[str | int, ...]
"""Member names and list indexes from the root."""


def pointer(path: Path) -> str:
    """A path as an RFC 6901 pointer: `/metadata/annotations/podferry.io~1status`."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def find(document: Any, path: Path) -> Any:
    """The value at a path, or None."""
    for step in path:
        if isinstance(document, dict):
            document = document.get(step)
        elif isinstance(document, list) and isinstance(step, int) and step < len(document):
            document = document[step]
        else:
            return None
    return document


class Draft:
    """A document being edited: its current state, and the operations so far, in order."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document: dict[str, Any] = copy.deepcopy(dict(document))
        self.operations: list[dict[str, Any]] = []

    def set(self, path: Path, value: Any) -> None:
        """Set a member of an object, creating missing objects above it; does nothing if it is equal."""
        *above, name = path
        parent = self._parent(tuple(above), {})
        if name in parent and parent[name] == value:
            return
        self._emit("replace" if name in parent else "add", path, value)
        parent[name] = copy.deepcopy(value)

    def insert(self, path: Path, at: int, value: Any) -> None:
        """Insert into the list at `path`, before index `at`; a missing list is created."""
        items = self._parent(path, [])
        items.insert(at, copy.deepcopy(value))
        self._emit("add", (*path, at), value)

    def append(self, path: Path, value: Any) -> None:
        """Append to the list at `path`; a missing list is created."""
        items = self._parent(path, [])
        items.append(copy.deepcopy(value))
        self._emit("add", (*path, "-"), value)

    def _parent(self, path: Path, empty: Any) -> Any:
        """The object or list at `path`; created, with everything above it, if it is absent or null."""
        found = find(self.document, path)
        if found is not None:
            return found
        *above, name = path
        parent = self._parent(tuple(above), {})
        self._emit("replace" if name in parent else "add", path, empty)
        parent[name] = copy.deepcopy(empty)
        return parent[name]

    def _emit(self, kind: str, path: Path, value: Any) -> None:
        self.operations.append({"op": kind, "path": pointer(path), "value": copy.deepcopy(value)})


def apply(document: Mapping[str, Any], operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Apply operations of a `Draft`, `add` and `replace`, to a document.

    The webhook itself does not need this, since the API server applies the patch; `podferry inject` does.
    """
    result = copy.deepcopy(dict(document))
    for operation in operations:
        *above, last = (_unescape(step) for step in str(operation["path"]).split("/")[1:])
        parent: Any = result
        for step in above:
            parent = parent[int(step)] if isinstance(parent, list) else parent[step]
        value = copy.deepcopy(operation["value"])
        if isinstance(parent, dict):
            parent[last] = value
        elif operation["op"] == "replace":
            parent[int(last)] = value
        else:
            parent.insert(len(parent) if last == "-" else int(last), value)
    return result


def _unescape(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")
