"""Which package imports which, read from the source: `python -m tests.support.package_graph` draws it.

A member of the graph is a top-level package (`contract`), a sub-package (`sidecar.fetch`) or a module next to
sub-packages (`storage.store`). Imports inside functions count: they are needed to run, too.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("contract", "storage", "sidecar", "webhook", "cache", "trainer", "components", "cli", "pipelines")
Graph = Mapping[str, frozenset[str]]
"""What each package imports, itself excluded."""


def imports(path: Path) -> Iterator[str]:
    """Dotted names below `podferry` that a file imports, also by `import_module`."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                yield from _below_podferry(name.name for name in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield from _below_podferry(f"{module}.{name.name}" for name in names)
            case ast.Call(func=ast.Name("import_module") | ast.Attribute(attr="import_module"), args=[text]):
                names = (part.value for part in ast.walk(text) if isinstance(part, ast.Constant))
                yield from _below_podferry(map(str, names))


def _below_podferry(names: Iterable[str]) -> Iterator[str]:
    return (name.removeprefix("podferry.") for name in names if name.startswith("podferry."))


def members(package: str) -> list[str]:
    """The direct members of a package that are drawn: its sub-packages and modules, without `__init__`."""
    folder = ROOT.joinpath(*package.split("."))
    found = [path.parent.name for path in folder.glob("*/__init__.py")]
    return sorted(found + [path.stem for path in folder.glob("*.py") if path.stem != "__init__"])


@cache
def graph(package: str = "") -> Graph:
    """What the members of a package import of each other; without one, what the top-level packages do."""
    names = members(package) if package else list(PACKAGES)
    start = f"{package}." if package else ""
    return {name: frozenset(_needed(f"{start}{name}", names, start) - {name}) for name in names}


def _needed(name: str, names: Iterable[str], start: str) -> set[str]:
    path = ROOT.joinpath(*name.split("."))
    files = path.rglob("*.py") if path.is_dir() else [path.with_suffix(".py")]
    wanted = {found.removeprefix(start).split(".")[0] for file in files for found in _below(file, start)}
    return wanted & set(names)


def _below(file: Path, start: str) -> Iterator[str]:
    return (found for found in imports(file) if found.startswith(start))


def layers(found: Graph) -> list[list[str]]:
    """The members in rows, top first: each as low as its imports allow.

    Raises:
        graphlib.CycleError: Some import each other.
    """
    height: dict[str, int] = {}
    for name in TopologicalSorter(found).static_order():
        height[name] = 1 + max((height[other] for other in found[name]), default=0)
    rows = range(max(height.values(), default=0), 0, -1)
    return [sorted(name for name, at in height.items() if at == row) for row in rows]


def main() -> None:
    """Draw the packages that are named, or all that ARCHITECTURE.md shows."""
    for package in sys.argv[1:] or ("", "storage", "sidecar", "sidecar.checkpoint", "webhook", "cli"):
        found = graph(package)
        print(f"\n{package or 'podferry'}")
        for row in layers(found):
            for name in row:
                print(f"  {name:16} -> {', '.join(sorted(found[name])) or '-'}")


if __name__ == "__main__":
    main()
