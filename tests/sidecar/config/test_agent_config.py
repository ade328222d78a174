from __future__ import annotations

from pathlib import Path

import pytest

from podferry.contract.destination.provenance import RunOrigin
from podferry.contract.errors import InvalidSpec
from podferry.contract.spec import CheckpointSpec, DatasetSpec, FerrySpec
from podferry.sidecar.config.agent_config import (
    AgentConfig,
    ProgramRun,
    decode_program_run,
    encode_program_run,
)
from podferry.sidecar.config.directories import Directories


def test_a_spec_without_its_directories_is_refused(tmp_path: Path) -> None:
    spec = FerrySpec(
        (DatasetSpec("file:///x"), DatasetSpec("file:///y", name="y")),
        checkpoints=CheckpointSpec("file:///y"),
    )
    with pytest.raises(Exception, match="--dataset-dir is missing") as caught:
        AgentConfig(spec, Directories(tmp_path))
    assert "--dataset-dir y= is missing" in str(caught.value)
    assert "the spec's lineage is missing" in str(caught.value)


def test_a_run_of_a_program_is_read_as_it_was_written() -> None:
    run = ProgramRun(RunOrigin("/work/train.py", "/work", "gpu-1", "0" * 12), ("local.train.",), ("x",))
    assert decode_program_run(encode_program_run(run)) == run
    assert run.option("restore", "file:///my results") == "--restore 'file:///my results'"
    with pytest.raises(InvalidSpec, match="--program is invalid"):
        decode_program_run("{}")
