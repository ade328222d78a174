"""Archives of all kinds, and a dataset of them over several starts of an agent."""

from __future__ import annotations

import gzip
import io
import os
import struct
import tarfile
import zipfile

import pytest

from podferry.contract.errors import Refused
from podferry.contract.spec import Unpack as Mode
from podferry.contract.uri import parse_uri
from podferry.sidecar.archive.member_writer import COPY_BYTES
from podferry.sidecar.archive.unpack_records import UnpackRecords, replace_with_members
from podferry.sidecar.archive.unpack_rules import ArchiveKind, SpaceBudget, archives_of
from podferry.sidecar.archive.unpacker import ArchiveUnpacker
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.range_reader import FetchContext
from podferry.sidecar.staging.file_ops import PARTIAL_DIR
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.sidecar.staging.volume_capacity import measure
from podferry.storage.listing.dataset import list_dataset
from podferry.storage.memory.faults import Content
from podferry.storage.memory.store import MemoryStore
from tests.support.zstd import zstd

SETTINGS = PrefetchSettings(range_bytes=1000, buffer_bytes=2500, attempts=2)
TREE = {"a/b.jpg": os.urandom(2000), "a/c": b"", "d": b"1", "e/f/g.bin": os.urandom(COPY_BYTES + 3)}
ENDINGS = [kind.value for kind in ArchiveKind]


def tar_of(members, mode="w", **options):
    """A tar archive of (header, content); a name as header is a regular file."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode, **options) as tar:
        for header, data in members:
            info = tarfile.TarInfo(header) if isinstance(header, str) else header
            if info.isreg():
                info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return made.getvalue()


def zip_of(members, method=zipfile.ZIP_DEFLATED):
    """A zip archive of (name or header, content), written like to a pipe: sizes follow the data."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for header, data in members:
            with archive.open(header, "w") as file:
                file.write(data)
    return made.getvalue()


def archive_of(ending, tree):
    if ending == ".zip":
        return zip_of(tree.items())
    plain = tar_of(tree.items())
    return {".tar.zst": zstd.compress, ".tar": bytes}.get(ending, gzip.compress)(plain)


def special(name, kind, target=""):
    """The header of a member that is not a regular file."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


class Site:
    """A dataset and a staging directory, over several starts."""

    def __init__(self, folder):
        self.content = Content()
        self.root = folder / "stage"
        self.root.mkdir()
        self.claims = folder / "claims"
        self.unpacked = []
        self.settings = SETTINGS

    def put(self, name, data):
        self.content.objects[f"d/{name}"] = data

    async def start(self, mode=Mode.ALWAYS, capacity=None, stage=StagingDir):
        """Claim and unpack like an agent; the names kept from an earlier start."""
        store = MemoryStore(parse_uri("memory://archives/d"), self.content)
        part = await list_dataset(store)
        held = stage(self.root, self.claims)
        archives = archives_of(part.entries, mode)
        records = UnpackRecords(self.root, self.claims)
        unpacked = records.find_unpacked(archives)
        kept = held.claim(replace_with_members(part, archives, unpacked), records.member_names)
        done = records.keep(unpacked, kept)
        plain = [entry for entry in part.entries if entry not in {archive.entry for archive in archives}]
        self.unpacked.clear()
        try:
            progress = lambda files, count: self.unpacked.append((files, count))  # noqa: E731
            await ArchiveUnpacker(
                [archive for archive in archives if archive.name not in done],
                FetchContext(store, held, self.settings, progress),
                records,
                [*(entry.name for entry in plain), *(one.name for name in done for one in unpacked[name])],
                SpaceBudget(capacity or measure(self.root)),
            ).run()
        finally:
            held.close()
        held.remove_partials()
        return kept

    def held(self):
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file()
        }


async def refused(site, kind=Refused, **options):
    """The error; the staging directory is unchanged."""
    before = site.held()
    with pytest.raises(kind) as caught:
        await site.start(**options)
    assert site.held() == before
    assert not list(site.root.glob(f"{PARTIAL_DIR}/*"))
    return caught.value


def overlapping():
    """Two directory entries of one member, like in a zip bomb whose members share bytes."""
    data = bytearray(zip_of([("aa", b"1" * 100), ("bb", b"2" * 100)], zipfile.ZIP_STORED))
    second = data.index(b"PK\x01\x02", data.index(b"PK\x01\x02") + 1)
    struct.pack_into("<L", data, second + 42, 0)
    data[second + 46 : second + 48] = b"aa"
    return bytes(data)


SMALL_TAR = tar_of([("a", b"1" * 600), ("b", b"2" * 600)])
SMALL_ZIP = zip_of([("a", b"1" * 600), ("b", b"2" * 600)], zipfile.ZIP_STORED)
