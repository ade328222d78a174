"""One dataset of a holder: adopted, fetched until it is complete, then served, and kept current."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import msgspec
import structlog

from podferry.cache.holder.content_checksums import record_checksums, recorded_dataset, remove_damaged
from podferry.cache.holder.in_place_readers import InPlaceReaders
from podferry.cache.holder.next_version import NoRoom, fetch_next
from podferry.cache.holder.served_versions import ServedVersions
from podferry.cache.holder.shared_fetch import SharedFetch
from podferry.cache.holder.version import HeldFile, Version, held_file, version_of
from podferry.cache.holder.version_files import VersionFiles
from podferry.cache.peers.peers import Peers
from podferry.cache.peers.waiting import wait_for
from podferry.contract.cache_api import Asker, Filling, HeldDataset, Progress
from podferry.contract.errors import Changed, FerryError, Refused, Unavailable
from podferry.contract.manifest import Manifest
from podferry.contract.status import DatasetStatus
from podferry.sidecar.dataset.dataset_job import DatasetJob, PlannedDataset
from podferry.sidecar.dataset.fit_check import fit_problems
from podferry.storage.retries import retry_temporary

log = structlog.get_logger(__name__)
PATIENCE_SECONDS = 3600.0
"""For a store that does not respond: readers take the source meanwhile, and a holder has no other work."""

T = TypeVar("T")
MakeJob = Callable[[Path, Path], DatasetJob]
"""Makes a job that stages the dataset, by its staging directory and that of its records."""


class HolderStage(InPlaceReaders):
    """Keeps one dataset in a directory. `refresher` takes what changes at its source.

    Args:
        uri: Of the dataset.
        make_job: See `MakeJob`.
        root: The files.
        directory: Where records about them are kept.
        peers: The other holders of the dataset; None if there are none.
        now: A monotonic clock in seconds.

    Attributes:
        versions: What is served.
        shared: What is fetched together with other holders.
        failure: Why nothing is.
        adopted: Whether what is served was found, and not yet compared with the source.
        shown: Whose progress the status shows.
        asked: Set when the source is to be listed again.
        refreshing: Whether it is to be, or what has changed there is being fetched.
        refresh_failure: Why that has failed the last time.
    """

    def __init__(
        self,
        uri: str,
        make_job: MakeJob,
        root: Path,
        directory: Path,
        peers: Peers | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.uri, self.root, self.directory = uri, root, directory
        self.make_job, self.now = make_job, now
        self.versions = ServedVersions(VersionFiles(root, directory), self.is_locked, now)
        self.shared, self._changed = SharedFetch(peers), asyncio.Event()
        self._job = make_job(root, directory)
        self.shown = self._job
        self.failure: FerryError | None = None
        self.adopted = self.refreshing = False
        self.refresh_failure: FerryError | None = None
        self.asked = asyncio.Event()

    @property
    def complete(self) -> Version | None:
        """What is served; None before the first version is complete."""
        return self.versions.current

    @property
    def status(self) -> DatasetStatus:
        """Its files, bytes and rate: of the next version while that is fetched."""
        self.shown.progress.refresh()
        return self.shown.status

    @property
    def is_frozen(self) -> bool:
        """Whether the dataset is one version for ever."""
        return self.frozen_digest is not None

    @property
    def frozen_digest(self) -> str | None:
        """Of the version that a frozen reference names; None for any."""
        return self._job.spec.parsed.digest

    def ask_refresh(self) -> None:
        """Have the source listed again."""
        self.refreshing = not self.is_frozen
        if self.refreshing:
            self.refresh_failure = None
        self.asked.set()

    @property
    def filling(self) -> Filling:
        """How far it is."""
        status = self.status
        return Filling(status.bytes, status.bytes_done)

    async def wait(self, seconds: float) -> None:
        """Wait until it is complete or has failed, or for this long."""
        await wait_for(self._changed, seconds)

    def file(self, digest: str, name: str, *, for_holder: bool = False) -> HeldFile | None:
        """A file of the version with this digest, of which the stage may have something.

        Args:
            digest: Of the manifest.
            name: Of the file.
            for_holder: For another holder, which verifies what is not complete yet.
        """
        version = self.versions.find(digest)
        if version is not None:
            return held_file(version, name)
        return self.shared.file(digest, name) if for_holder else None

    async def progress(self, asker: Asker, log_id: str, since: int, wait_seconds: float) -> Progress | None:
        """What another holder asks for; None if this stage is not shared.

        Args:
            asker: The other one.
            log_id: The log that it has read.
            since: How many news of it.
            wait_seconds: How long to wait for more.
        """
        seconds = wait_seconds if self.failure is None else 0.0
        return await self.shared.news(asker, log_id, since, seconds, lambda: self.status.bytes_done)

    async def fill(self) -> None:
        """Adopt what an earlier holder has left, or fetch everything, and serve it.

        Raises:
            FerryError: It cannot be staged; `failure` says so to readers as well.
        """
        try:
            await asyncio.to_thread(self._recover)
            version = await self._found()
            if version is None and await asyncio.to_thread(self.has_left):
                self.versions.keep_left()
                await retry_temporary(self._replace_left, None, PATIENCE_SECONDS)
            else:
                self.versions.current = version or await self._filled()
                self._publish(self.versions.current)
            if self.complete is not None:
                manifest = self.complete.document.manifest
                log.info("dataset complete", uri=self.uri, files=manifest.files, bytes=manifest.bytes)
        except FerryError as error:
            self.failure = error
            raise
        finally:
            self._changed.set()

    def _recover(self) -> None:
        self.versions.recover(self.least_number())
        damaged = remove_damaged(self.root, self.directory)
        if damaged:
            log.warning("files have changed or are gone, and are fetched again", files=len(damaged))

    async def _found(self) -> Version | None:
        """The version that an earlier holder has left complete, or None."""
        held = await asyncio.to_thread(recorded_dataset, self.directory, self.uri)
        if held is None or self.frozen_digest not in {None, held.manifest.digest}:
            return None
        manifest = held.manifest
        if len(self._job.staging.claim(manifest)) < manifest.files:
            return None
        self._job.staging.remove_partials()  # nothing is fetched into it: trainers list what is there
        status = self._job.status
        status.digest, status.files, status.bytes = manifest.digest, manifest.files, manifest.bytes
        self._job.progress.planned(manifest.files, manifest.bytes)
        await self.shared.adopt(held, self._job.staging)
        self.adopted = True
        log.info("complete dataset adopted", uri=self.uri)
        version = await version_of(held, self.root)
        version.used_at = self.now()  # an earlier holder's readers may have it
        return version

    async def _replace_left(self) -> None:
        """Fetch the dataset next to another one, which stays in place until this is complete.

        A container that starts again meanwhile finds the dataset that it had. Without room, pods wait.
        """
        try:
            await self._unchanged(fetch_next(self))
        except NoRoom as error:
            self.refresh_failure = error
            raise Unavailable(*error.problems) from error
        self.refresh_failure = None

    async def _filled(self) -> Version:
        self.retract()
        await asyncio.to_thread(self.versions.files.drop_next)
        manifest = await retry_temporary(lambda: self._unchanged(self._fetch()), None, PATIENCE_SECONDS)
        return await self.recorded(manifest, self.root, self.directory)

    async def _unchanged(self, fetch: Awaitable[T]) -> T:
        """What a fetch returns; a source that changes meanwhile is listed again."""
        try:
            return await fetch
        except Changed as error:
            if self.is_frozen:
                raise
            raise Unavailable(*error.problems) from error

    async def _fetch(self) -> Manifest:
        await self._job.close()
        self._job = self.shown = self.make_job(self.root, self.directory)
        while True:
            planned = await self.plan(self._job)
            self.check(planned.manifest)
            problems = fit_problems([planned.sized], in_pod=False)
            if not problems:
                break
            if not await self.make_room():
                raise Refused(*problems)
        await self.shared.fetch(planned, self.directory)
        return planned.manifest

    async def plan(self, job: DatasetJob) -> PlannedDataset:
        """Plan what a job stages, next to what the other versions take."""
        planned = await job.plan()
        if planned.sized.size_limit is None:  # the volume's free space counts
            return planned
        others = await asyncio.to_thread(self.versions.files.other_bytes, job.staging.root)
        sized = msgspec.structs.replace(planned.sized, other_bytes=others)
        return msgspec.structs.replace(planned, sized=sized)

    def check(self, manifest: Manifest) -> None:
        """Refuse a dataset that cannot be served; raises `Refused`."""

    async def make_room(self) -> bool:
        """Remove something that nobody reads; False if there is nothing."""
        return await self.versions.remove_unread()

    async def recorded(self, manifest: Manifest, root: Path, directory: Path) -> Version:
        """What is served of files that are all there, with their checksums.

        Args:
            manifest: What the version has.
            root: Where its files are; they are at `self.root` when it is served.
            directory: Of its records.
        """
        wanted = root, directory, manifest, self.uri, self.shared.take_checksums(manifest.digest)
        checksums = await asyncio.to_thread(record_checksums, *wanted)
        return await version_of(HeldDataset(manifest, checksums), self.root)

    def serve_next(self, version: Version) -> None:
        """Serve the next version of `versions`, which is complete, from now on."""
        self.retract()
        self.versions.serve_next(version)
        self._publish(version)

    def _publish(self, version: Version) -> None:
        self.publish(version)
        self.failure = None
        self._changed.set()

    def drop(self) -> None:
        """Serve nothing until the next version is complete. Blocks."""
        self._changed.clear()
        self.retract()
        self.versions.drop_current()

    async def close(self) -> None:
        """Release the stage; its files stay for the next holder."""
        await self._job.close()
