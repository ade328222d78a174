"""What this run records about itself in its commits, and how it compares with earlier ones."""

from __future__ import annotations

from dataclasses import replace

import structlog

from podferry.contract.destination.provenance import DatasetVersion, RunOrigin, dataset_location
from podferry.contract.spec import PREFIX
from podferry.sidecar.checkpoint.commit.dataset_guard import DatasetGuard
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.commit.similar_lineages import similar_lineages
from podferry.sidecar.checkpoint.pipeline.restore_plan import Restored
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.state.agent_state import AgentState
from podferry.sidecar.state.journal import Journal

log = structlog.get_logger(__name__)

CHANGED_REMEDY = "to start from the beginning instead, set restore to never"


def annotation(name: str, value: str) -> str:
    """A setting of a pod."""
    return f"{PREFIX}{name}: {value}"


class RunProvenance:
    """The datasets and the program of one agent's run; a restarted worker finds them in the journal."""

    def __init__(self, config: AgentConfig, journal: Journal, state: AgentState) -> None:
        self._program, self._rank, self.code = config.program, config.spec.rank, config.code
        self._record, self._state = journal.agent, state

    @property
    def origin(self) -> RunOrigin | None:
        """The program, outside Kubernetes."""
        return self._program.origin if self._program is not None else None

    @property
    def datasets(self) -> tuple[DatasetVersion, ...]:
        """What training reads; known once the datasets are planned."""
        return tuple(self._record.datasets)

    @property
    def changes(self) -> tuple[str, ...]:
        """How the datasets differ from what the restored checkpoint was trained on."""
        return tuple(self._record.dataset_changes)

    @property
    def code_changes(self) -> tuple[str, ...]:
        """How the code differs from the one that wrote it."""
        return tuple(self._record.code_changes)

    def take_datasets(self) -> None:
        """Record the datasets as they were listed; the journal is saved with the next record."""
        self._record.datasets = [
            DatasetVersion(dataset_location(one.uri), one.digest, one.name)
            for one in self._state.status.datasets
        ]

    def guard(self, store: LineageStore) -> DatasetGuard:
        """Compares commits of a lineage with the datasets."""
        option = annotation if self._program is None else self._program.option
        return DatasetGuard(store.uri, self.datasets, self._rank, option, self.code)

    async def compare(self, found: Restored, store: LineageStore) -> Restored:
        """Report what has changed since the restored checkpoint, or where else the program has checkpoints.

        Args:
            found: What was restored, if anything.
            store: The lineage.
        """
        self._record.dataset_changes = list(found.dataset_changes)
        self._record.code_changes = list(found.code_changes)
        run = self._program
        # `podferry run` prints both with the summary; a program that calls `ferry` does not, nor does a pod.
        report = log.info if run is not None and not run.in_python else log.warning
        if found.dataset_changes:
            event = "the dataset has changed since the restored checkpoint"
            report(event, changes=found.dataset_changes, remedy=CHANGED_REMEDY)
        if found.code_changes:
            event = "the training code has changed since the restored checkpoint"
            report(event, changes=found.code_changes, remedy=CHANGED_REMEDY)
        if run is None or not run.prefixes or found.status is not None or found.passed_over:
            return found
        lines = tuple(await similar_lineages(store.destination, store.lineage, run, self.datasets))
        if lines:
            report(
                "other runs of this program have checkpoints; these options resume from them", options=lines
            )
        return replace(found, similar=lines)
