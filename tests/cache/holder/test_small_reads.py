import pytest

from podferry.cache.holder.small_reads import PIECE_BYTES, open_bundle, read_bundle, read_small
from podferry.cache.holder.version import version_of
from podferry.contract.bundle import MAX_BYTES
from podferry.contract.cache_api import HeldDataset
from podferry.contract.manifest import Entry, freeze

FILES = {"a": b"one", "b/c": b"two", "d": b"", "e": b"three", "f": bytes(MAX_BYTES)}


@pytest.fixture
async def version(tmp_path):
    for name, data in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    manifest = freeze("file:///set", [Entry(name, len(data)) for name, data in FILES.items()])
    return await version_of(HeldDataset(manifest, tuple(0 for _ in FILES)), tmp_path)


def test_a_file_of_another_size_is_not_sent(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    assert read_small(tmp_path / "file", 3) == b"abc"
    assert read_small(tmp_path / "file", 2) is None
    assert read_small(tmp_path / "file", 4) is None
    assert read_small(tmp_path / "gone", 3) is None


def test_what_cannot_be_read_is_not_sent(tmp_path):
    assert read_small(tmp_path, 3) is None


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("0", b"one"),
        ("0-3", b"onetwothree"),
        ("1,3", b"twothree"),
        ("2", b""),
        ("2,4", bytes(MAX_BYTES)),
        ("3-4", None),
        ("4-5", None),
        ("9999999999", None),
        ("a", None),
    ],
)
async def test_a_bundle_is_its_files_one_after_the_other(version, name, body):
    assert read_bundle(version, name) == body


async def test_a_bundle_with_a_file_that_is_gone_or_changed_is_not_sent(version):
    (version.root / "b/c").write_bytes(b"longer")
    assert read_bundle(version, "0-1") is None
    (version.root / "b/c").unlink()
    assert read_bundle(version, "0-1") is None
    assert read_bundle(version, "0") == b"one"


async def test_a_bundle_is_read_piece_by_piece(tmp_path):
    sizes = [PIECE_BYTES // 2 + 1] * 5 + [0]
    for number, size in enumerate(sizes):
        (tmp_path / str(number)).write_bytes(bytes([number]) * size)
    manifest = freeze("file:///set", [Entry(str(number), size) for number, size in enumerate(sizes)])
    version = await version_of(HeldDataset(manifest, tuple(0 for _ in sizes)), tmp_path)
    length, pieces = open_bundle(version, "0-5")
    assert (length, len(next(pieces))) == (sum(sizes), PIECE_BYTES + 2)
    (tmp_path / "4").unlink()
    assert len(next(pieces)) == PIECE_BYTES + 2
    with pytest.raises(FileNotFoundError):
        next(pieces)
