"""The compiled example pipelines: golden files that fail when they are stale.

`PODFERRY_GOLDEN=write pytest tests/pipelines/test_compile.py` writes them again; review the difference.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from podferry.pipelines.digits import digits
from podferry.pipelines.distributed.pipeline import distributed, distributed_pods
from podferry.pipelines.images.pipeline import images
from podferry.pipelines.read_write_split.pipeline import read_write_split
from podferry.pipelines.scripts.pipeline import scripts
from podferry.pipelines.sweep.pipeline import sweep
from podferry.pipelines.tabular.pipeline import tabular
from podferry.pipelines.text.pipeline import text
from tests.support.compiled import check_golden

GOLDEN = Path(__file__).parent / "golden"
COMPILED = {
    "digits": digits,
    "distributed": distributed,
    "distributed_pods": distributed_pods,
    "images": images,
    "read_write_split": read_write_split,
    "scripts": scripts,
    "sweep": sweep,
    "tabular": tabular,
    "text": text,
}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_pipelines_are_the_golden_ones(name: str, tmp_path: Path) -> None:
    check_golden(COMPILED[name], GOLDEN / f"{name}.yaml", tmp_path)


def test_every_golden_file_belongs_to_a_pipeline() -> None:
    assert {path.stem for path in GOLDEN.glob("*.yaml")} == set(COMPILED)
