"""The output in docs/quotas.md is that of its own commands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "quotas.md"
BLOCK = re.compile(r"```(sh|text)\n(.*?)```", re.DOTALL)


def test_the_output_is_what_the_command_prints(tmp_path: Path) -> None:
    (_, _), (_, code), (_, expected), *_ = BLOCK.findall(PAGE.read_text())
    files, _, command = code.rpartition("podferry explain ")
    subprocess.run(["bash", "-euc", files], cwd=tmp_path, check=True)
    words = command.partition("||")[0].split()
    program = [sys.executable, "-m", "podferry.cli.main", "explain", *words]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert (done.stdout + done.stderr).endswith(expected)
