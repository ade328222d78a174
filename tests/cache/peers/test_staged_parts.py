import pytest

from podferry.cache.peers.staged_parts import open_staged, part_checksum, written_parts
from podferry.contract.file_part import FilePart
from podferry.contract.manifest import Entry, freeze
from podferry.sidecar.fetch.partial_file import PartialFile, WrittenRange
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.storage.checksum.checksums import crc64

DATA = bytes(range(25))
ENTRY = Entry("d/large", len(DATA), "t")
RANGE, PART = 5, 10


@pytest.fixture
def stage(tmp_path, monkeypatch):
    monkeypatch.setattr("podferry.contract.file_part.PART_BYTES", PART)
    (tmp_path / "stage").mkdir()
    stage = StagingDir(tmp_path / "stage", tmp_path / "own")
    stage.claim(freeze("memory://d", [ENTRY]))
    yield stage
    stage.close()


@pytest.fixture
def partial(stage):
    partial = PartialFile(stage, ENTRY, RANGE)
    for start in (0, 5, 10, 20):
        stage.write(partial.path, memoryview(DATA)[start : start + RANGE], start)
        partial.record(WrittenRange(start, RANGE))
    return partial


def test_parts_that_an_earlier_start_wrote(stage, partial):
    first, last = FilePart(ENTRY, 0, 10), FilePart(ENTRY, 20, 5)
    assert written_parts(stage, ENTRY, RANGE) == (first, last)
    partial.forget(0, 5)
    assert written_parts(stage, ENTRY, RANGE) == (last,)
    assert written_parts(stage, Entry("other", 25), RANGE) == ()


def test_a_part_is_read_before_and_after_its_file_has_its_name(stage, partial):
    part = FilePart(ENTRY, 5, 5)
    assert part_checksum(stage, part) == crc64(DATA[5:10])
    partial.publish()
    assert part_checksum(stage, part) == crc64(DATA[5:10])
    (stage.root / ENTRY.name).unlink()
    with pytest.raises(FileNotFoundError):
        open_staged(stage, ENTRY)
