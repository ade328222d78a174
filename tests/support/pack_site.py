"""A dataset, its pack and a staging directory, for tests."""

from __future__ import annotations

import os

from hypothesis import strategies as st

from podferry.contract.manifest import Entry
from podferry.contract.spec import Unpack
from podferry.contract.uri import parse_uri
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.dataset.materialize import Materializer
from podferry.sidecar.dataset.selection import Selection, select_manifest
from podferry.sidecar.fetch.plan import plan_fetch
from podferry.sidecar.fetch.range_reader import FetchContext
from podferry.sidecar.pack.builder import PackBuilder
from podferry.sidecar.pack.reader import open_pack
from podferry.sidecar.pack.verify import verify_pack
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.storage.listing.dataset import Dataset, list_dataset
from podferry.storage.memory.faults import Content
from podferry.storage.memory.store import MemoryStore

SETTINGS = PrefetchSettings(in_flight=4, range_bytes=3000, buffer_bytes=9000, attempts=2)


SHARD = 10_000


TREE = {f"{i % 5}/{i:03}.jpg": os.urandom(i * 37) for i in range(60)} | {
    "large": os.urandom(25_000),
    "ä/" + "n" * 200: b"long name",
    "empty": b"",
}


NAMES = st.from_regex(r"[a-zä ]{1,8}(/[a-z.]{1,4}x){0,2}", fullmatch=True)


TREES = st.dictionaries(NAMES, st.binary(max_size=9000), min_size=1, max_size=12)


ENTRIES = st.lists(
    st.builds(Entry, st.one_of(NAMES, st.text("aä/", min_size=90, max_size=300)), st.integers(0, 1 << 40)),
    min_size=1,
    max_size=12,
    unique_by=lambda entry: entry.name,
)


class Death(BaseException):
    """Ends a process like a kill."""


class Site:
    """A dataset, the target of its pack, and a staging directory."""

    def __init__(self, folder, tree=TREE):
        self.source, self.target = Content(), Content()
        self.source.objects = {f"d/{name}": data for name, data in tree.items()}
        self.root, self.claims = folder / "stage", folder / "claims"
        self.root.mkdir()

    def opened(self, content, name):
        return MemoryStore(parse_uri(f"memory://{name}/d"), content)

    async def pack(self, shard_bytes=SHARD):
        store = self.opened(self.source, "source")
        dataset = Dataset(store, await list_dataset(store))
        return await PackBuilder(dataset, self.opened(self.target, "target"), shard_bytes, SETTINGS).run()

    async def unpack(self, selection=None, stage=StagingDir):
        """Claim and fetch like an agent; the names that were kept."""
        store = self.opened(self.target, "target")
        pack = await open_pack(store, await list_dataset(store))
        part = select_manifest(pack.manifest, store.uri, selection or Selection())
        held = stage(self.root, self.claims)
        try:
            contents = Materializer(part, pack, Unpack.AUTO, held, self.claims)
            kept = contents.claim()
            plan = plan_fetch(part, kept, SETTINGS)
            seen = []
            progress = lambda files, count: seen.append((files, count))  # noqa: E731
            rest = await contents.unpack(plan, FetchContext(store, held, SETTINGS, progress))
            assert sum(files for files, _ in seen) == len(plan.files) - len(rest.files)
            assert sum(count for _, count in seen) == sum(e.size for e in plan.files) - sum(
                e.size for e in rest.files
            )
            self.rest = [entry.name for entry in rest.files]
            held.remove_partials()
        finally:
            held.close()
        return kept

    async def problems(self):
        store = self.opened(self.target, "target")
        return await verify_pack(await open_pack(store, await list_dataset(store)), store, SETTINGS)

    def held(self):
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file()
        }

    def reads(self):
        return [name for call, name in self.target.calls if call == "read"]
