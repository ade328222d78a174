from __future__ import annotations

from pathlib import Path

import pytest

from podferry.contract.spec import CheckpointSpec, DatasetSpec, FerrySpec
from podferry.sidecar.config.agent_config import AgentConfig
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
