"""What the wheel installs into site-packages."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {"cli", "components", "contract", "pipelines", "sidecar", "storage", "trainer", "webhook"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Names in a wheel built from what git would hand out, apart from the working tree's build folder."""
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
    return zipfile.ZipFile(next(out.glob("*.whl"))).namelist()


@pytest.mark.timeout(180)
def test_wheel_provides_podferry_and_nothing_else(wheel: list[str]) -> None:
    assert {name.split("/")[0].split("-")[0] for name in wheel} == {"podferry"}
    assert "podferry/__init__.py" not in wheel, "podferry is a namespace"
    packages = {name.split("/")[1] for name in wheel if name.startswith("podferry/")}
    assert packages == PACKAGES


@pytest.mark.timeout(180)
def test_every_package_is_typed_and_complete(wheel: list[str]) -> None:
    for package in PACKAGES:
        assert f"podferry/{package}/py.typed" in wheel
        modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / package).rglob("*.py")}
        assert {f"podferry/{module}" for module in modules} <= set(wheel)
