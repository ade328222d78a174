import asyncio
import io

import pytest

from podferry.contract.errors import Corrupt, Refused, Unavailable
from podferry.contract.manifest import Entry
from podferry.contract.uri import parse_uri
from podferry.sidecar.archive.unpack_rules import Archive, ArchiveKind, NameRegistry
from podferry.sidecar.sync import member_uploader
from podferry.sidecar.sync.member_uploader import MemberUploader
from podferry.storage.memory.faults import Fault
from podferry.storage.memory.store import MemoryStore

SMALL, LARGE = b"s" * 100, b"L" * 5000


@pytest.fixture
def upload(site, monkeypatch):
    """Uploads members (name, data, size in the header) from a thread, as an unpacker does."""
    monkeypatch.setattr(member_uploader, "SMALL_BYTES", 1000)

    async def run(*members):
        archive = Archive(Entry("d/x.tar", 1), ArchiveKind.TAR)
        uploader = MemberUploader(
            archive, MemoryStore(parse_uri(site.target_uri)), NameRegistry(["d/taken"]), 2
        )

        def write():
            for name, data, size in members:
                uploader.write(name, size, io.BytesIO(data).read)

        try:
            await asyncio.to_thread(write)
            await uploader.finish()
        finally:
            await uploader.abandon()
        return uploader.members

    return run


async def test_members_get_names_next_to_their_archive(site, upload):
    many = [(f"m{number}", SMALL, 100) for number in range(40)]
    members = await upload(("./large", LARGE, 5000), *many, ("empty", b"", 0))
    assert site.held() == {"d/large": LARGE, "d/empty": b"", **{f"d/{name}": SMALL for name, _, _ in many}}
    store = MemoryStore(parse_uri(site.target_uri))
    assert [await store.stat(member.name) for member in members] == members
    assert len(members) == 42


@pytest.mark.parametrize("data", [SMALL, LARGE])
async def test_a_member_that_ends_early_is_not_written(site, upload, data):
    with pytest.raises(Corrupt, match="ends early"):
        await upload(("m", data, len(data) + 1))
    assert site.held() == {}


async def test_only_small_members_are_sent_again(site, upload):
    site.target.faults.append(Fault("write", error=Unavailable.of("once")))
    await upload(("small", SMALL, 100))
    site.target.faults.append(Fault("write", error=Unavailable.of("once")))
    with pytest.raises(Unavailable):
        await upload(("large", LARGE, 5000))
    assert site.held() == {"d/small": SMALL}


@pytest.mark.parametrize("names", [("a", "a"), ("taken",), ("a", "a/b")])
async def test_names_that_are_taken_are_refused(upload, names):
    with pytest.raises(Refused):
        await upload(*((name, SMALL, 100) for name in names))
