"""A checkpoint job over the rig's directories, and uploads that wait."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from podferry.contract.spec import CheckpointSpec, FerrySpec
from podferry.contract.status import Status
from podferry.sidecar.checkpoint.pipeline.checkpoint_job import CheckpointJob
from podferry.sidecar.checkpoint.upload.uploader import Uploader
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


@pytest.fixture
def hold_sent(monkeypatch):
    """Call it: uploads that begin then wait once all bytes are sent. Events: one has, and they go on."""

    def begin():
        sent, go_on, send = asyncio.Event(), asyncio.Event(), Uploader.send

        async def held(*args):
            result = await send(*args)
            sent.set()
            await go_on.wait()
            return result

        monkeypatch.setattr(Uploader, "send", held)
        return sent, go_on

    return begin
