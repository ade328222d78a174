"""Compares compiled KFP components and pipelines with golden files."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import yaml
from kfp import compiler


def check_golden(component: Any, golden: Path, folder: Path) -> None:
    """Compile into `folder`, and compare with the golden file; `PODFERRY_GOLDEN=write` writes it instead."""
    found = _documents(component, folder / "compiled.yaml")
    if os.environ.get("PODFERRY_GOLDEN") == "write":
        golden.write_text(yaml.safe_dump_all(found, width=110))
    assert found == list(yaml.safe_load_all(golden.read_text())), f"{golden} is stale: review, write it again"


def _documents(component: Any, path: Path) -> list[Any]:
    """What the compiler writes, without differences between KFP versions that do not matter."""
    compiler.Compiler().compile(component, str(path))
    text = re.sub(r"kfp(-|==)\d+\.\d+\.\d+", r"kfp\1X", path.read_text())
    text = re.sub(r"\bdigest: [0-9a-f]{12}\b", "digest: X", text)  # of code that installs this version of kfp
    return list(yaml.safe_load_all(text))
