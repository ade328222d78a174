"""The Python blocks of the components' READMEs are complete files: all compile, and most run."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest
from kfp import local
from kfp.local import config

pytestmark = pytest.mark.examples
READMES = sorted((Path(__file__).parents[2] / "components").glob("**/README.md"))
BLOCK = re.compile(r"(?P<marked><!-- not run: [^>]+ -->\n)?```python\n(?P<code>.*?)```", re.DOTALL)


@pytest.fixture(autouse=True)
def runner(tmp_path: Path) -> Iterator[None]:
    """KFP's local runner, whose steps import what this process imports."""
    local.init(local.SubprocessRunner(use_venv=False), pipeline_root=str(tmp_path / "root"))
    yield
    config.LocalExecutionConfig.instance = None


@pytest.mark.filterwarnings("ignore:.*have no effect in the current local runner:UserWarning")
@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_examples_run(
    readme: Path, tmp_path: Path, digits: Path, destination: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an example calls `pipeline` reads a folder and writes to another one; others need a cluster."""
    monkeypatch.chdir(tmp_path)
    arguments = {"uri": str(digits), "out": destination}
    for number, found in enumerate(BLOCK.finditer(readme.read_text())):
        if found["marked"]:
            continue
        # KFP reads the source of a component from its file.
        example = tmp_path / f"example_{number}.py"
        example.write_text(found["code"])
        pipeline = runpy.run_path(str(example)).get("pipeline")
        if pipeline is not None:
            inputs = pipeline.component_spec.inputs
            pipeline(**{name: value for name, value in arguments.items() if name in inputs})
