"""The commands of the documents run, in order, one directory per page; links have targets."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "ARCHITECTURE.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
BLOCK = re.compile(
    r"(?:<!-- (?:not run|cluster): (?P<why>[^>]+) -->\n)?```(?P<language>sh|python)\n(?P<code>.*?)```",
    re.DOTALL,
)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
PATH = re.compile(
    r"`((?:contract|storage|sidecar|webhook|cache|deploy|trainer|components|cli|pipelines)/[\w/]+\.\w+)`"
)
TRAIN = """
import os, pathlib
folder = pathlib.Path(os.environ["PODFERRY_CHECKPOINTS"])
(folder / "epoch-1.bin").write_bytes(b"weights")
"""


def blocks(page: Path) -> list[tuple[str, str]]:
    """(language, code) of what is to be run; `README.md` installs and calls make, which others do.

    Blocks marked `cluster` run in the end-to-end tests.
    """
    if page.parent == ROOT:
        return []
    return [
        (found["language"], found["code"]) for found in BLOCK.finditer(page.read_text()) if not found["why"]
    ]


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a dataset and a trainer, as the pages assume, and `podferry` on the path."""
    (tmp_path / "data").mkdir()
    for name in ("a.bin", "b.bin"):
        (tmp_path / "data" / name).write_bytes(name.encode() * 100)
    (tmp_path / "train.py").write_text(TRAIN)
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, words in {
        "podferry": f"{sys.executable} -m podferry.cli.main",
        "python": sys.executable,
    }.items():
        (programs / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    return tmp_path


@pytest.mark.programs
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
def test_commands_run(page: Path, workplace: Path) -> None:
    for language, code in blocks(page):
        # KFP reads the source of a component from its file.
        (workplace / "example.py").write_text(code)
        command = (
            ["bash", "-euo", "pipefail", "-c", code] if language == "sh" else [sys.executable, "example.py"]
        )
        done = subprocess.run(
            command, cwd=workplace, capture_output=True, text=True, timeout=100, check=False
        )
        assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_and_paths_exist(page: Path) -> None:
    text = page.read_text()
    assert [link for link in LINK.findall(text) if not (page.parent / link).exists()] == []
    assert [path for path in PATH.findall(text) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_lines_are_not_too_long_to_read(page: Path) -> None:
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    long = [line for line in prose.splitlines() if len(line) > 120 and not line.startswith("|")]
    assert long == []
