"""Builds a minimal JSON patch (RFC 6902) from edits on plain JSON.

Typed pod models drop fields that they do not know, and so does a patch that replaces entire lists. A `Draft`
only adds what is missing and replaces single values, so everything else is preserved.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

Path = tuple[str | int, ...]
"""Member names and list indexes from the root."""


@lru_cache(maxsize=4096)
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
    """A document being edited: its current state, and the operations so far, in order.

    Only objects and lists on the way to an edit are copied; all others are shared with the original, which
    never changes: copying a pod of 24 KB takes longer than the decision. Nobody else may change `document`,
    nor a value after it was passed in.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document: dict[str, Any] = dict(document)
        self.operations: list[dict[str, Any]] = []
        self._copies: dict[int, Any] = {}
        """Objects and lists of this draft alone, by identity; held here, so that no identity is reused."""
        self._found: dict[Path, Any] = {}
        """The same by path, as long as no index shifts."""

    def set(self, path: Path, value: Any) -> None:
        """Set a member of an object, creating missing objects above it; does nothing if it is equal."""
        *above, name = path
        parent = self._editable(tuple(above), {})
        if name in parent and parent[name] == value:
            return
        self._emit("replace" if name in parent else "add", path, value)
        if isinstance(parent.get(name), dict | list):
            self._found.clear()
        parent[name] = value

    def insert(self, path: Path, at: int, value: Any) -> None:
        """Insert into the list at `path`, before index `at`; a missing list is created."""
        self._editable(path, []).insert(at, value)
        self._found.clear()
        self._emit("add", (*path, at), value)

    def append(self, path: Path, *values: Any) -> None:
        """Append to the list at `path`; a missing list is created."""
        if values:
            self._editable(path, []).extend(values)
            end = pointer((*path, "-"))
            self.operations += [{"op": "add", "path": end, "value": value} for value in values]

    def move(self, path: Path, start: int, end: int) -> None:
        """Move an item of the list at `path` from index `start` to index `end`."""
        items = self._editable(path, [])
        items.insert(end, items.pop(start))
        self._found.clear()
        source, target = pointer((*path, start)), pointer((*path, end))
        self.operations.append({"op": "move", "from": source, "path": target})

    def _editable(self, path: Path, empty: Any) -> Any:
        """This draft's copy of the object or list at `path`; created, with what is above it, if absent."""
        if not path:
            return self.document
        if path in self._found:
            return self._found[path]
        parent, step = self._editable(path[:-1], {}), path[-1]
        child = parent.get(step) if isinstance(parent, dict) else parent[step]
        if child is None:
            self._emit("replace" if step in parent else "add", path, empty)
            child = empty
        if id(child) not in self._copies:
            child = parent[step] = child.copy()
            self._copies[id(child)] = child
        self._found[path] = child
        return child

    def _emit(self, kind: str, path: Path, value: Any) -> None:
        self.operations.append({"op": kind, "path": pointer(path), "value": value})


def apply(document: Mapping[str, Any], operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Apply operations of a `Draft`, `add`, `replace` and `move`, to a document.

    The webhook itself does not need this, since the API server applies the patch; `podferry inject` does.
    """
    result = copy.deepcopy(dict(document))
    for operation in operations:
        parent, last = _parent_of(result, operation["path"])
        if operation["op"] == "move":
            value = parent.pop(int(_parent_of(result, operation["from"])[1]))
        else:
            value = copy.deepcopy(operation["value"])
        if isinstance(parent, dict):
            parent[last] = value
        elif operation["op"] == "replace":
            parent[int(last)] = value
        else:
            parent.insert(len(parent) if last == "-" else int(last), value)
    return result


def _parent_of(document: Any, target: str) -> tuple[Any, str]:
    """The object or list that a pointer leads into, and the last step."""
    *above, last = (_unescape(step) for step in target.split("/")[1:])
    for step in above:
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document, last


def _unescape(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")
