"""A directory of outputs, its destination, and jobs for them."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

from podferry.contract.destination.output_record import OutputRecord, decode_record
from podferry.contract.http_api import Durability
from podferry.contract.spec import FerrySpec, OutputSpec
from podferry.contract.status import Status
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.config.directories import Directories
from podferry.sidecar.outputs.output_job import OutputJob
from podferry.sidecar.state.agent_state import AgentState
from podferry.storage.memory.store import CONTENTS, Content
from tests.support.patience import PATIENCE

RECORD = ".podferry/outputs.json"
DURABLE = Durability(durable=True)


class Site:
    """A directory of outputs, its destination, and jobs for them."""

    def __init__(self, base: Path) -> None:
        self.base, self.root, self.bucket = base, base / "outputs", f"outputs-{base.name}"
        self.root.mkdir()
        self.content = CONTENTS.setdefault(self.bucket, Content())
        self.state = AgentState(Status())

    def job(self, every: int | None = None, world: int = 1, rank: int | None = None) -> OutputJob:
        """One life of a worker."""
        spec = OutputSpec(f"memory://{self.bucket}/runs", str(self.root), every=every)
        ferry_spec = FerrySpec(outputs=spec, lineage="team.job.digits", world=world, rank=rank)
        config = AgentConfig(
            ferry_spec, Directories(self.base / "control", outputs=self.root), run_id="run-1"
        )
        return OutputJob(spec, self.root, config, self.state, "team.job.digits", "w" * 32)

    def write(self, name: str, data: bytes, *, age: float = 3600.0) -> Path:
        """Write a file as a trainer, last changed `age` seconds ago."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (time.time() - age,) * 2)
        return path

    def uploaded(self) -> dict[str, bytes]:
        """The destination's files, without the record."""
        found = {key.removeprefix("runs/"): data for key, data in self.content.objects.items()}
        return {name: data for name, data in found.items() if not name.startswith(".podferry/")}

    def record(self, name: str = RECORD) -> OutputRecord:
        return decode_record(self.content.objects[f"runs/{name}"], name)

    def writes(self) -> list[str]:
        """Names of the files that were sent, in order."""
        return [name for call, name in self.content.calls if call == "write" and not name.startswith(".podf")]


def end() -> float:
    return time.monotonic() + PATIENCE


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - of files and threads, which set no event
            await asyncio.sleep(0.001)
