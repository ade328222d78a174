"""The checkpoints' part of an agent: check the destination, restore, ferry."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from pathlib import Path

import structlog

from podferry.contract.api import CheckpointStatus, RestoredStatus
from podferry.contract.errors import Refused
from podferry.contract.quantity import format_bytes
from podferry.contract.spec import CheckpointSpec
from podferry.sidecar.access import store_config
from podferry.sidecar.capacity import measure
from podferry.sidecar.catalogue import Catalogue
from podferry.sidecar.committer import Author, Committer
from podferry.sidecar.config import AgentConfig
from podferry.sidecar.detector import Detector
from podferry.sidecar.ferrying import CheckpointFerry, Gear
from podferry.sidecar.journal import Journal
from podferry.sidecar.pin import Pins
from podferry.sidecar.restore import Source, restore, restored_status, source_of
from podferry.sidecar.state import State
from podferry.sidecar.upload import Uploader
from podferry.sidecar.watch import Watch, open_watch
from podferry.storage.open import open_store

log = structlog.get_logger(__name__)


class CheckpointWork:
    """Keeps the checkpoints of one lineage."""

    def __init__(self, spec: CheckpointSpec, config: AgentConfig, journal: Journal, state: State) -> None:
        places, lineage = config.places, config.spec.lineage
        # The entry point resolves all three wherever there are checkpoints.
        assert places.checkpoints is not None and places.pins is not None  # noqa: PT018, S101
        assert lineage is not None  # noqa: S101
        self._spec, self._config, self._journal, self._state = spec, config, journal, state
        self._root, self._pins, self._lineage = places.checkpoints, places.pins, lineage
        self._committer: Committer | None = None
        self._source: Source | None = None
        self._watch: Watch | None = None
        self._restored_names: list[str] = []
        self.restored: RestoredStatus | None = journal.record.restored
        state.status.checkpoints = CheckpointStatus(uri=spec.uri, path=spec.path, lineage=lineage)

    def connect(self) -> Committer:
        """The committer at the destination; nothing is sent yet.

        Raises:
            CredentialsMissing, UnknownScheme, InvalidWish: There is no way to reach it.
        """
        if self._committer is None:
            access = store_config(self._spec.access, self._config.checkpoint_secret)
            catalogue = Catalogue(open_store(self._spec.parsed, access))
            author = Author(uuid.uuid4().hex, self._config.spec.world, self._config.run)
            attempts = self._config.settings.checkpoint.attempts
            self._committer = Committer(catalogue, self._lineage, author, lambda: datetime.now(UTC), attempts)
        return self._committer

    async def plan(self) -> None:
        """Find out that the destination takes writes, what to restore, and that there is room for it.

        Raises:
            Refused, NotFound, FormatTooNew and the store's errors: Why it will not work.
        """
        if not self._root.is_dir():
            what = f"the checkpoint directory {self._root} does not exist"
            raise Refused.of(what, remedy=f"Create it with `mkdir -p {self._root}`, or correct the path")
        access = store_config(self._spec.access, self._config.checkpoint_secret)
        committer = self.connect()
        await committer.announce()
        self._source = await source_of(self._spec.restore, committer.catalogue, self._lineage, access)
        commits = await self._source.commits() if self._source else []
        free = measure(self._root).volume_bytes
        # What an earlier start of this worker brought is there and needs no more room.
        lacking = [
            file.size
            for file in (commits[0].files if commits else ())
            if not (self._root / file.name).exists()
        ]
        if sum(lacking) > free:
            measured = (
                f"{commits[0].name} has {format_bytes(commits[0].bytes)}, {format_bytes(free)} are free"
            )
            remedy = "Raise checkpoint-size, or set restore to never"
            raise Refused.of("the checkpoint to restore is larger than its volume", measured, remedy)

    async def restore(self) -> None:
        """Bring back what training resumes from, if anything.

        Raises:
            Refused, NotFound, TemporaryError: See `podferry.sidecar.restore.restore`.
        """
        if self._source is None:
            return
        found = await restore(self._source, self._root, self._pins.parent / "restoring")
        if found is not None:
            commit, seconds = found
            self.restored = restored_status(commit, seconds)
            self._restored_names = [file.name for file in commit.files]
            log.info("restored", name=commit.name, sequence=commit.sequence, bytes=commit.bytes)

    def ferry(self) -> CheckpointFerry:
        """What makes new checkpoints durable from now on."""
        settings = self._config.settings.checkpoint
        self._watch = open_watch(self._root, settings, polling=self._config.settings.polling)
        gear = Gear(
            Detector(self._root, self._watch, settings),
            Pins(self._pins, self._notes()),
            Uploader(self.connect(), settings.chunk_bytes, settings.attempts),
            self._journal,
        )
        self._journal.record.restored = self.restored
        ferry = CheckpointFerry(gear, self._state, settings, self._spec.keep_local)
        ferry.mark_restored(self._restored_names)
        return ferry

    def _notes(self) -> Path | None:
        """In a pod beside the journal. Elsewhere pins outlive the agent, and so must their notes."""
        places = self._config.places
        return places.control / "pins" if places.in_pod else None

    async def close(self) -> None:
        """Give back the connections and the watch."""
        if self._watch is not None:
            self._watch.close()
        if self._committer is not None:
            await self._committer.catalogue.store.close()

    def summary(self) -> str:
        """One line for people."""
        place = f"{self._spec.uri}/{self._lineage}"
        if self.restored is None:
            return f"checkpoints: to {place}; training starts anew"
        found = f"resuming from {self.restored.name} (commit {self.restored.sequence})"
        return f"checkpoints: to {place}; {found}; set restore to never to start anew"
