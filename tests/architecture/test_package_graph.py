"""ARCHITECTURE.md's pictures against the imports: nothing missing, no cycle, no import upward or sideways."""

from __future__ import annotations

import re

import pytest

from tests.support.package_graph import ROOT, Graph, graph, imports, layers

PAGE = (ROOT / "ARCHITECTURE.md").read_text()
PICTURES = {
    found["package"]: [re.split(r" {2,}", row.strip())[0].split(" | ") for row in found["rows"].splitlines()]
    for found in re.finditer(r"```text\n(?P<package>[a-z.]+)\n(?P<rows>(?:  .+\n)+)```", PAGE)
}


def drawn(package: str) -> Graph:
    return graph("" if package == "podferry" else package)


def test_every_layered_package_has_a_picture() -> None:
    assert set(PICTURES) == {"podferry", "storage", "sidecar", "sidecar.checkpoint", "webhook", "cli"}


@pytest.mark.parametrize("package", PICTURES)
def test_a_picture_shows_every_member_once(package: str) -> None:
    shown = sorted(name for row in PICTURES[package] for name in row)
    assert shown == sorted(drawn(package))


@pytest.mark.parametrize("package", PICTURES)
def test_every_import_points_to_a_row_below(package: str) -> None:
    row_of = {name: row for row, names in enumerate(PICTURES[package]) for name in names}
    upward = [
        f"{name} imports {other}"
        for name, others in drawn(package).items()
        for other in sorted(others)
        if row_of[other] <= row_of[name]
    ]
    assert upward == []


@pytest.mark.parametrize("package", [*PICTURES, "contract"])
def test_there_is_no_cycle(package: str) -> None:
    assert layers(drawn(package))


def test_imports_inside_functions_and_by_name_count(tmp_path) -> None:
    source = tmp_path / "a.py"
    source.write_text(
        "import podferry.sidecar.fetch.plan\n"
        "def later():\n"
        "    from podferry import storage\n"
        "    from podferry.storage.local.store import LocalStore\n"
        "    import_module('podferry.storage.factory')\n"
        "    importlib.import_module(f'podferry.cli.{verb}')\n"
    )
    assert set(imports(source)) == {
        "sidecar.fetch.plan",
        "storage",
        "storage.local.store.LocalStore",
        "storage.factory",
        "cli.",
    }
