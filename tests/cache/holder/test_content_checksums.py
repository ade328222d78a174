import pytest

from podferry.cache.holder.content_checksums import RECORD, file_checksum, record_checksums, remove_damaged
from podferry.contract.manifest import Entry, freeze
from podferry.storage.checksum.checksums import crc64

URI = "memory://d"
FILES = {"a/1": b"one", "b": b"two" * 1_000_000, "empty": b""}


@pytest.fixture
def stage(tmp_path):
    for name, data in FILES.items():
        (tmp_path / "stage" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "stage" / name).write_bytes(data)
    (tmp_path / "kept").mkdir()
    return tmp_path / "stage"


def manifest(tag="x"):
    return freeze("memory://d", [Entry(name, len(data), tag) for name, data in FILES.items()])


def test_the_checksums_are_in_the_order_of_the_manifest(stage, tmp_path):
    assert record_checksums(stage, tmp_path / "kept", manifest(), URI) == tuple(
        crc64(FILES[entry.name]) for entry in manifest().entries
    )


def test_recorded_files_are_not_read_again(stage, tmp_path):
    first = record_checksums(stage, tmp_path / "kept", manifest(), URI)
    for name in FILES:
        (stage / name).unlink()
    assert record_checksums(stage, tmp_path / "kept", manifest(), URI) == first


def test_another_version_of_the_dataset_is_read(stage, tmp_path):
    record_checksums(stage, tmp_path / "kept", manifest(), URI)
    (stage / "b").write_bytes(b"new")
    found = record_checksums(stage, tmp_path / "kept", manifest("y"), URI)
    assert found[1] == crc64(b"new") == file_checksum(stage / "b")


def test_files_that_have_changed_are_removed_and_forgotten(stage, tmp_path):
    record_checksums(stage, tmp_path / "kept", manifest(), URI)
    (stage / "a/1").write_bytes(b"0ne")
    (stage / "empty").unlink()
    assert remove_damaged(stage, tmp_path / "kept") == ["a/1", "empty"]
    assert not (stage / "a/1").exists()
    assert (stage / "b").exists()
    (stage / "a/1").write_bytes(b"one")
    (stage / "empty").touch()
    assert record_checksums(stage, tmp_path / "kept", manifest(), URI)[0] == crc64(b"one")
    assert remove_damaged(stage, tmp_path / "kept") == []


@pytest.mark.parametrize("record", [b"", b"{", b'{"format": 99}', b'{"format": 1, "checksums": 5}'])
def test_an_unreadable_record_is_none(stage, tmp_path, record):
    (tmp_path / "kept" / RECORD).write_bytes(record)
    assert remove_damaged(stage, tmp_path / "kept") == []
    assert len(record_checksums(stage, tmp_path / "kept", manifest(), URI)) == len(FILES)
