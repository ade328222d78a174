"""An agent's checkpoint job: checks the destination, restores, then runs the pipeline."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import structlog

from podferry.contract.destination.commit import Commit
from podferry.contract.errors import Problem, Refused
from podferry.contract.spec import CheckpointSpec
from podferry.contract.status import CheckpointStatus, RestoredStatus
from podferry.sidecar.checkpoint.commit.agent_identity import AgentIdentity
from podferry.sidecar.checkpoint.commit.commit_history import CommitHistory
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.committer import Committer
from podferry.sidecar.checkpoint.commit.handover import Handover
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.commit.main_kind import newest_main
from podferry.sidecar.checkpoint.commit.retention import Retention
from podferry.sidecar.checkpoint.commit.rival_watch import announce
from podferry.sidecar.checkpoint.detect.assessor import TrainerContext
from podferry.sidecar.checkpoint.detect.detector import Detector
from podferry.sidecar.checkpoint.detect.open_files import OpenFiles
from podferry.sidecar.checkpoint.detect.trainer_processes import trainer_of
from podferry.sidecar.checkpoint.detect.watcher import Watch, open_watch
from podferry.sidecar.checkpoint.gang.coordinator import GangCoordinator
from podferry.sidecar.checkpoint.pipeline.dependencies import Dependencies
from podferry.sidecar.checkpoint.pipeline.pipeline import CheckpointPipeline
from podferry.sidecar.checkpoint.pipeline.restore_plan import Restored, RestorePlan
from podferry.sidecar.checkpoint.pipeline.run_provenance import RunProvenance
from podferry.sidecar.checkpoint.restore.choice import restore_source_of
from podferry.sidecar.checkpoint.upload.hardlink_hold import HardlinkHolds
from podferry.sidecar.checkpoint.upload.upload_journal import UploadJournals
from podferry.sidecar.checkpoint.upload.uploader import Uploader
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.config.store_access import store_config
from podferry.sidecar.runtime.concurrency import task_group
from podferry.sidecar.state.agent_state import AgentState
from podferry.sidecar.state.durations import Durations
from podferry.sidecar.state.journal import Journal
from podferry.sidecar.state.upload_counters import UploadCounters
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig

log = structlog.get_logger(__name__)

MAY_RUN = "an earlier run of this lineage has not reported its end: it was killed, or it still runs"


@dataclass(frozen=True, slots=True)
class OpenLineage:
    """What reads and writes one lineage; `gang` is None if one pod writes all."""

    access: StoreConfig
    committer: Committer
    handover: Handover
    gang: GangCoordinator | None


class CheckpointJob:
    """The checkpoints of one lineage.

    Call order: `plan`, `restore` with that plan, `start`. A worker that restarts during training only starts.
    """

    def __init__(
        self, spec: CheckpointSpec, config: AgentConfig, journal: Journal, state: AgentState
    ) -> None:
        directories, pod, lineage = config.directories, config.spec, config.spec.lineage
        # The configuration has all three if there are checkpoints.
        assert directories.checkpoints is not None and directories.holds is not None  # noqa: PT018, S101
        assert lineage is not None  # noqa: S101
        self._spec, self._config, self._journal, self._state = spec, config, journal, state
        self._root, self._holds, self._lineage = directories.checkpoints, directories.holds, lineage
        self._provenance = RunProvenance(config, journal, state)
        self._identity = AgentIdentity(
            journal.agent.agent_id,
            pod.world,
            config.run_id,
            pod.rank,
            self._provenance.origin,
            self._provenance.code,
        )
        self._destination: OpenLineage | None = None
        self._before = ""
        self._watch: Watch | None = None
        self._history: CommitHistory | None = None
        changes = self._provenance.changes, self._provenance.code_changes
        self._restored = Restored.recorded(journal.checkpoints, *changes)
        self._status = CheckpointStatus(uri=spec.uri, path=spec.path, lineage=lineage)
        self._restored.show(self._status)
        state.status.checkpoints = self._status

    @property
    def restored(self) -> RestoredStatus | None:
        """What training resumes from, or None."""
        return self._restored.status

    @property
    def handover(self) -> Handover | None:
        """The notes to the next agent; None if nobody needs to wait for this one, which uploads nothing."""
        return None if self._spec.read_only else self._connect().handover

    def _connect(self) -> OpenLineage:
        """The destination, opened once, or CredentialsMissing, UnknownScheme, InvalidSpec; sends nothing."""
        if self._destination is None:
            access = store_config(self._spec.access, self._config.checkpoint_secret, self._config.guards)
            store = LineageStore(open_store(self._spec.parsed, access), self._lineage)
            tuning = self._config.tuning.checkpoint
            committer = Committer(CommitReader(store), self._identity, _now, tuning.attempts)
            gang = GangCoordinator(committer, time.time) if self._identity.world > 1 else None
            handover = Handover(store, self._identity, _now)
            self._destination = OpenLineage(access, committer, handover, gang)
        return self._destination

    async def plan(self) -> RestorePlan:
        """Check that the destination is writable and that what is to be restored exists and fits.

        Raises:
            Refused, NotFound, FormatTooNew and the store's errors: The problem.
        """
        Refused.raise_any(self._problems())
        opened, partial = self._connect(), self._holds.parent / "restoring"
        own, writes = opened.committer.reader, not self._spec.read_only
        async with task_group() as group:
            if writes:
                group.create_task(self._announce(opened.committer))
            self._history = await own.history()
            if writes:
                group.create_task(opened.committer.begin(self._history.newest))
            checked = group.create_task(self._checked_plan(opened, partial, self._history))
        return checked.result()

    async def _announce(self, committer: Committer) -> None:
        rival = await announce(committer.store, self._identity, _now)
        if rival is not None and self._identity.world == 1:
            self._before = f"\n{MAY_RUN}: {rival}"
            log.info(MAY_RUN, other=str(rival))

    async def _checked_plan(self, opened: OpenLineage, partial: Path, history: CommitHistory) -> RestorePlan:
        own = opened.committer.reader
        source = await restore_source_of(self._spec.restore, own, opened.access, history)
        plan = RestorePlan(opened.handover, opened.gang, source, self._root, partial, self._identity.rank)
        await plan.check()
        return plan

    def _problems(self) -> Iterator[Problem]:
        if not self._root.is_dir():
            what = f"the checkpoint directory {self._root} does not exist"
            yield Problem(what, remedy=f"Create it with `mkdir -p {self._root}`, or correct the path")
        if self._identity.world > 1 and self._identity.rank is None:
            what = "the rank of this pod among those that write a checkpoint together is unknown"
            remedy = "Use an Indexed Job or a JobSet, or leave out podferry.io/world"
            yield Problem(what, f"world is {self._identity.world}", remedy)

    async def restore(self, plan: RestorePlan) -> None:
        """Download what training resumes from; raises what `RestorePlan.run` raises."""
        committer = self._connect().committer
        self._provenance.take_datasets()
        committer.datasets = self._provenance.datasets  # a gang may commit what an earlier life has left
        self._restored = await plan.run(self._provenance.guard(committer.store))
        if plan.source is not None:
            self._restored = await self._provenance.compare(self._restored, committer.store)
        self._restored.show(self._status)

    async def start(self, durations: Durations) -> CheckpointPipeline:
        """Build the pipeline that makes new checkpoints durable; raises the destination's `FerryError`."""
        destination = self._connect()
        destination.committer.datasets = self._provenance.datasets
        if destination.gang is not None:
            await destination.gang.announce()  # a restarted worker finds its pod's announcement
        # A restarted worker needs no answer here: its pod trains, and the store may be unreachable.
        before_training = self._journal.agent.gate is None
        newest = await self._newest_commit(destination.committer.reader) if before_training else None
        dependencies, tuning = self._dependencies(destination, durations), self._config.tuning.checkpoint
        self._restored = self._restored.after(newest) if newest is not None else self._restored
        given = dependencies, self._state, self._status, tuning, self._spec.keep_local
        pipeline = CheckpointPipeline(*given, read_only=self._spec.read_only)
        pipeline.mark_restored(self._restored)
        if newest is not None:
            pipeline.ignore_older_than(newest)
        if before_training:
            pipeline.begin()
        return pipeline

    def _dependencies(self, destination: OpenLineage, durations: Durations) -> Dependencies:
        directories, committer, counters = self._config.directories, destination.committer, UploadCounters()
        # Elsewhere holds outlive the agent, and so must their notes.
        own = self._config.in_pod or directories.has_temporary_checkpoints
        notes = directories.control / "pins" if own else None
        journals, tuning = UploadJournals(directories.control / "uploads"), self._config.tuning.checkpoint
        return Dependencies(
            self._detector(),
            HardlinkHolds(self._holds, notes, after=self._journal.checkpoints.last_hold),
            Uploader(committer, journals, tuning, self._spec.upload_limit, counters),
            committer,
            self._journal,
            durations,
            counters,
            destination.gang,
            self._retention(destination),
        )

    async def _newest_commit(self, reader: CommitReader) -> Commit | None:
        """The newest commit that training can resume from, sure or doubtful, of those that are readable."""
        history = await reader.history(self._history)
        return await newest_main(history.newest_first())

    def _detector(self) -> Detector:
        tuning = self._config.tuning
        self._watch = open_watch(self._root, tuning.checkpoint, polling=tuning.polling)
        # DCP's coordinator is the first rank: it alone has the files that are written last.
        several = self._identity.world > 1 or self._spec.read_only
        gang = several and self._identity.rank != 0
        # The kubelet, and a launcher under `podferry run`, restart a trainer without a word to the agent.
        local, program = not self._config.in_pod, self._config.program
        processes = trainer_of(self._root) if local else None
        one_life = local and program is not None and program.in_python
        context = TrainerContext(gang, not several, one_life, processes, OpenFiles(sees_writers=local))
        complete = self._spec.complete
        return Detector(self._root, self._watch, tuning.checkpoint, completion=complete, context=context)

    def _retention(self, destination: OpenLineage) -> Retention | None:
        keep = self._spec.keep_remote
        # Of several ranks that commit together one is enough.
        if keep is None or self._spec.read_only or (destination.gang is not None and self._identity.rank):
            return None
        protect = [self.restored.checkpoint] if self.restored is not None else []
        guard = self._provenance.guard(destination.committer.store)
        return Retention(destination.committer.reader, keep, protect, guard.is_foreign)

    def has_writers(self) -> bool:
        """Whether a process of a local run's trainer lives; in a pod that cannot be known."""
        return not self._config.in_pod and bool(trainer_of(self._root).look())

    async def close(self) -> None:
        """Close the connections and the watch."""
        if self._watch is not None:
            self._watch.close()
        if self._destination is not None:
            await self._destination.committer.store.destination.close()

    def summary(self) -> str:
        """One line for people."""
        place = self._spec.parsed / self._lineage
        way = f"from {place}, which rank 0 alone writes" if self._spec.read_only else f"to {place}"
        return f"checkpoints: {way}; {self._restored.summary()}{self._before}"


def _now() -> datetime:
    return datetime.now(UTC)
