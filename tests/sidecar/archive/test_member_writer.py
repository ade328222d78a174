from __future__ import annotations

import gzip
import io
import tarfile

import pytest

from podferry.contract.errors import Corrupt
from podferry.contract.manifest import Entry, freeze
from podferry.sidecar.archive.member_writer import MemberWriter, library_errors
from podferry.sidecar.archive.unpack_rules import Archive, ArchiveKind, SpaceBudget
from podferry.sidecar.staging.file_ops import PARTIAL_DIR
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.sidecar.staging.volume_capacity import Capacity
from tests.support.archive_site import refused, tar_of, zip_of
from tests.support.zstd import zstd

LARGE = Capacity(volume_bytes=1 << 40)
BAD = ["../x", "/abs", "a//b", "a/./b", "a/../../x", "n" * 256, "con\ntrol", f"{PARTIAL_DIR}/1"]


@pytest.mark.parametrize("ending", [".tar", ".zip"])
async def test_all_bad_names_are_reported_together(site, ending):
    members = [("good", b"1"), *((name, b"2") for name in BAD)]
    site.put(f"x{ending}", tar_of(members) if ending == ".tar" else zip_of(members))
    error = await refused(site)
    assert [problem.measured for problem in error.problems] == [ascii(name)[:200] for name in BAD]


def bomb(size):
    return {
        ".tar.gz": gzip.compress(tar_of([("zeros", bytes(size))])),
        ".tar.zst": zstd.compress(tar_of([("zeros", bytes(size))])),
        ".zip": zip_of([("zeros", bytes(size))]),
    }


@pytest.mark.parametrize("ending", [".tar.gz", ".tar.zst", ".zip"])
async def test_an_archive_that_exceeds_the_budget_is_refused_with_numbers(site, ending):
    site.put(f"x{ending}", bomb(8 << 20)[ending])
    error = await refused(site, capacity=Capacity(volume_bytes=4 << 20))
    assert error.problems[0].measured == "1 files so far: 8.0 MiB; 4.0 MiB are free"
    error = await refused(site, capacity=Capacity(volume_bytes=1 << 40, memory_bytes=4 << 20))
    assert "the free memory" in error.problems[0].what
    await site.start()


async def test_many_tiny_members_are_counted_in_pages_and_inodes(site):
    site.put("x.tar.gz", gzip.compress(tar_of([(str(i), b"1") for i in range(100)])))
    error = await refused(site, capacity=Capacity(volume_bytes=99 * 4096))
    assert error.problems[0].measured == "100 files so far: 400.0 KiB; 396.0 KiB are free"
    assert "too few inodes" in str(await refused(site, capacity=Capacity(1 << 40, volume_files=99)))


@pytest.fixture
def writer(tmp_path):
    (tmp_path / "stage").mkdir()
    stage = StagingDir(tmp_path / "stage", tmp_path / "claims")
    stage.claim(freeze("memory://x", []))
    yield MemberWriter(Archive(Entry("d/x.tar", 10), ArchiveKind.TAR), stage, SpaceBudget(LARGE), "0-")
    stage.close()


def test_a_member_is_written_to_a_partial_file(writer):
    writer.write("a/b", 5, io.BytesIO(b"12345").read)
    assert writer.members == [Entry("d/a/b", 5)]
    assert writer.partial_path(0).read_bytes() == b"12345"


def test_a_member_that_ends_early_is_corrupt(writer):
    with pytest.raises(Corrupt, match=r"'a' ends early: 3 bytes; its header says 5"):
        writer.write("a", 5, io.BytesIO(b"123").read)
    assert writer.members == []


@pytest.mark.parametrize("error", [EOFError(), tarfile.ReadError("bad checksum"), ValueError("bad checksum")])
def test_errors_of_the_libraries_name_the_archive(writer, error):
    with (
        pytest.raises(Corrupt, match=r"d/x\.tar is not a complete \.tar file") as caught,
        library_errors(writer.archive),
    ):
        raise error
    assert caught.value.problems[0].measured == (str(error) or "EOFError")
