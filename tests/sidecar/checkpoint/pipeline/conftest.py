"""A checkpoint job over the rig's directories."""

from __future__ import annotations

import msgspec
import pytest

from podferry.contract.spec import CheckpointSpec, FerrySpec
from podferry.contract.status import Status
from podferry.sidecar.checkpoint.pipeline.checkpoint_job import CheckpointJob
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.config.directories import Directories
from podferry.sidecar.config.tuning import Tuning
from podferry.sidecar.state.agent_state import AgentState
from podferry.sidecar.state.journal import Journal
from podferry.storage.memory.store import CONTENTS


@pytest.fixture
def work(any_rig, monkeypatch):
    """A checkpoint job over the rig's directories and store; keywords replace the spec's."""
    monkeypatch.setitem(CONTENTS, "rig", any_rig.content)

    def make(code=None, **changes):
        spec = msgspec.structs.replace(CheckpointSpec("memory://rig/base", "/seen"), **changes)
        directories = Directories(any_rig.control, checkpoints=any_rig.root, holds=any_rig.holds)
        tuning = Tuning(checkpoint=any_rig.settings, polling=any_rig.polling)
        config = AgentConfig(
            FerrySpec(checkpoints=spec, lineage="run"), directories, tuning=tuning, code=code
        )
        return CheckpointJob(spec, config, Journal(any_rig.control), AgentState(Status()))

    return make
