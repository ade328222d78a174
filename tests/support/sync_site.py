"""A source and a destination in memory, and syncs between them."""

from __future__ import annotations

from podferry.contract.dataset_reference import parse_reference
from podferry.contract.destination.private_names import is_sync_record
from podferry.contract.uri import parse_uri
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.dataset.selection import Selection
from podferry.sidecar.sync.comparison import SyncOptions
from podferry.sidecar.sync.sync import Sync
from podferry.storage.memory.faults import Content
from podferry.storage.memory.store import CONTENTS
from podferry.storage.store import StoreConfig
from tests.support.memory_bucket import Killed

SETTINGS = PrefetchSettings(range_bytes=1000, attempts=2)
FILES = {"a": b"1", "d/b": b"22", "d/e/c": b"x" * 3500, "empty": b""}
DEATH = (Killed, BaseExceptionGroup)
"""A task group that something other than an error ends raises it in a group."""


class SyncSite:
    """Attributes: contents of both places; `SyncSite.sync(…)` runs a sync and returns its result."""

    def __init__(self, name):
        self.source_uri, self.target_uri = f"memory://{name}-source/d", f"memory://{name}-target/copy"
        self.source = CONTENTS.setdefault(f"{name}-source", Content())
        self.target = CONTENTS.setdefault(f"{name}-target", Content())

    def put(self, **files):
        for name, data in files.items():
            self.source.objects[f"d/{name}"] = data if isinstance(data, bytes) else data.encode()

    def make(self, include=(), exclude=(), source=None, target=None, config=None, **options):
        return Sync(
            parse_reference(source or self.source_uri),
            parse_uri(target or self.target_uri),
            config or StoreConfig(),
            config or StoreConfig(),
            SyncOptions(Selection(include, exclude), **({"settings": SETTINGS} | options)),
        )

    async def sync(self, **options):
        return await self.make(**options).run()

    def held(self):
        """What the destination has, without the records."""
        names = {key.removeprefix("copy/"): data for key, data in self.target.objects.items()}
        return {name: data for name, data in names.items() if not is_sync_record(name)}

    def records(self):
        return [name for name in self.target.objects if is_sync_record(name.removeprefix("copy/"))]

    def wanted(self):
        return {key.removeprefix("d/"): data for key, data in self.source.objects.items()}

    def close(self):
        for content in (self.source_uri, self.target_uri):
            CONTENTS.pop(parse_uri(content).bucket, None)
