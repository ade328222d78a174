"""What the wheel installs into site-packages."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {"cache", "cli", "components", "contract", "pipelines", "sidecar", "storage", "trainer", "webhook"}


@pytest.fixture(scope="module")
def wheel_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from what git would hand out, apart from the working tree's build folder."""
    source = tmp_path_factory.mktemp("source")
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(out), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def wheel(wheel_file: Path) -> list[str]:
    """Names in the wheel."""
    return zipfile.ZipFile(wheel_file).namelist()


def test_wheel_provides_podferry_and_nothing_else(wheel: list[str]) -> None:
    assert {name.split("/")[0].split("-")[0] for name in wheel} == {"podferry"}
    packages = {name.split("/")[1] for name in wheel if name.startswith("podferry/")}
    assert packages == {*PACKAGES, "__init__.py", "__main__.py", "py.typed"}


def test_every_package_is_typed_and_complete(wheel: list[str]) -> None:
    for package in PACKAGES:
        assert f"podferry/{package}/py.typed" in wheel
        modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / package).rglob("*.py")}
        assert {f"podferry/{module}" for module in modules} <= set(wheel)


def test_python_m_podferry_is_the_command_and_the_version_is_known(wheel_file: Path, tmp_path: Path) -> None:
    """As installed, without the repository."""
    zipfile.ZipFile(wheel_file).extractall(tmp_path)
    environ = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": "1"}

    def python(*words: str) -> str:
        run = subprocess.run(
            [sys.executable, *words], env=environ, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return run.stdout

    version = python("-c", "import podferry; print(podferry.__version__, podferry.__file__)").split()
    assert version[1].startswith(str(tmp_path))
    assert python("-m", "podferry", "--version") == f"podferry, version {version[0]}\n"
    assert "Verbs:" in python("-m", "podferry", "--help")
