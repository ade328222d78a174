from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from podferry.contract.spec import CheckpointSpec, DatasetSpec, FerrySpec, OutputSpec
from podferry.contract.status import Status
from podferry.sidecar.agent.jobs import Jobs
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.config.directories import Directories
from podferry.sidecar.state.agent_state import AgentState
from podferry.sidecar.state.journal import Journal


def jobs_of(spec: FerrySpec, base: Path) -> Jobs:
    directories = Directories(
        base / "control",
        datasets={one.name: base / "stage" / one.name for one in spec.datasets},
        checkpoints=base / "checkpoints",
        holds=base / "pins",
        outputs=base / "outputs",
    )
    return Jobs(AgentConfig(spec, directories), Journal(base / "control"), AgentState(Status()))


async def test_the_trainer_gets_its_own_paths(tmp_path: Path) -> None:
    spec = FerrySpec(
        (DatasetSpec("file:///a", "/data"), DatasetSpec("file:///b", "/data-val", name="val")),
        checkpoints=CheckpointSpec(f"file://{tmp_path}/c", "/checkpoints"),
        outputs=OutputSpec(f"file://{tmp_path}/o", "/outputs"),
        lineage="run",
    )
    jobs = jobs_of(spec, tmp_path)
    assert jobs.environment() == {
        "PODFERRY_DATASET": "/data",
        "PODFERRY_DATASET_VAL": "/data-val",
        "PODFERRY_CHECKPOINTS": "/checkpoints",
        "PODFERRY_OUTPUTS": "/outputs",
        "PODFERRY_LINEAGE": "run",
    }
    assert [line.partition(":")[0] for line in jobs.summary().splitlines()][-1] == "outputs"
    await jobs.close()


async def test_a_pod_has_only_the_jobs_of_its_spec(tmp_path: Path) -> None:
    jobs = jobs_of(FerrySpec(outputs=OutputSpec(f"file://{tmp_path}/o", "/outputs"), lineage="run"), tmp_path)
    assert (jobs.datasets, jobs.checkpoints) == (None, None)
    assert jobs.environment() == {"PODFERRY_OUTPUTS": "/outputs", "PODFERRY_LINEAGE": "run"}
    assert len(jobs.summary().splitlines()) == 1
    await jobs.close()


LISTING = """
import sys
from podferry.sidecar.agent import worker
print(*(name for name in sys.modules if name.startswith("podferry.sidecar")))
"""


async def test_code_that_a_pod_may_not_need_is_not_imported_before_its_spec_is_known() -> None:
    command = [sys.executable, "-c", LISTING]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
    packages = {".".join(name.split(".")[:3]) for name in done.stdout.split()}
    assert packages.isdisjoint({"podferry.sidecar.checkpoint", "podferry.sidecar.outputs"})
