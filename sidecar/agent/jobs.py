"""The jobs of one pod."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from podferry.contract.http_api import (
    CHECKPOINTS_VARIABLE,
    LINEAGE_VARIABLE,
    OUTPUTS_VARIABLE,
    RESTORED_VARIABLE,
)
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.state.agent_state import AgentState
from podferry.sidecar.state.journal import Journal

if TYPE_CHECKING:
    from podferry.sidecar.checkpoint.pipeline.checkpoint_job import CheckpointJob
    from podferry.sidecar.dataset.all_datasets_job import DatasetsJob
    from podferry.sidecar.dataset.shared_datasets_job import SharedDatasetsJob
    from podferry.sidecar.outputs.output_job import OutputJob


class Jobs:
    """Datasets, shared ones, checkpoints and outputs; each is None unless the pod has it.

    Training waits for this start, so code that the pod does not need is not imported. The rest is imported
    here, before the API serves requests, because imports block the event loop.
    """

    def __init__(self, config: AgentConfig, journal: Journal, state: AgentState) -> None:
        self._spec = spec = config.spec
        self.datasets: DatasetsJob | None = None
        if spec.datasets:
            from podferry.sidecar.dataset.all_datasets_job import DatasetsJob  # noqa: PLC0415

            self.datasets = DatasetsJob(config, state)
        self.shared: SharedDatasetsJob | None = None
        if spec.shared:
            from podferry.sidecar.dataset.shared_datasets_job import SharedDatasetsJob  # noqa: PLC0415

            self.shared = SharedDatasetsJob(config, state)
        self.checkpoints: CheckpointJob | None = None
        self.outputs: OutputJob | None = None
        if spec.checkpoints is not None:
            from podferry.sidecar.checkpoint.pipeline.checkpoint_job import CheckpointJob  # noqa: PLC0415

            self.checkpoints = CheckpointJob(spec.checkpoints, config, journal, state)
        root, lineage = config.directories.outputs, spec.lineage
        if spec.outputs is not None and root is not None and lineage is not None:
            from podferry.sidecar.outputs.output_job import OutputJob  # noqa: PLC0415

            self.outputs = OutputJob(spec.outputs, root, config, state, lineage, journal.agent.agent_id)

    def _all(self) -> list[DatasetsJob | SharedDatasetsJob | CheckpointJob | OutputJob]:
        jobs = (self.datasets, self.shared, self.checkpoints, self.outputs)
        return [job for job in jobs if job is not None]

    def datasets_answered(self) -> bool:
        """Whether the stores of the datasets have listed files."""
        return self.datasets is not None and self.datasets.answered

    def environment(self) -> dict[str, str]:
        """The trainer's environment, with its own paths."""
        environment = {dataset.variable: dataset.path for dataset in self._spec.all_datasets}
        if self._spec.lineage is not None and self._spec.has_destination:
            environment[LINEAGE_VARIABLE] = self._spec.lineage
        if self._spec.outputs is not None:
            environment[OUTPUTS_VARIABLE] = self._spec.outputs.path
        if self._spec.checkpoints is not None and self.checkpoints is not None:
            environment[CHECKPOINTS_VARIABLE] = path = self._spec.checkpoints.path
            if self.checkpoints.restored is not None:
                environment[RESTORED_VARIABLE] = str(Path(path, self.checkpoints.restored.path))
        return environment

    def summary(self) -> str:
        """One line per job, for the user."""
        return "\n".join(job.summary() for job in self._all())

    async def close(self) -> None:
        """Release connections, the file watch and the staging directories' locks."""
        for job in self._all():
            await job.close()
