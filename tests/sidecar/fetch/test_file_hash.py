import hashlib

import pytest

from podferry.sidecar.fetch.file_hash import FileHash
from podferry.sidecar.runtime.file_digest import CHUNK_BYTES
from podferry.storage.checksum.checksums import ChecksumKind

DATA = bytes(range(251)) * (3 * CHUNK_BYTES // 251)


@pytest.fixture
def path(tmp_path):
    (tmp_path / "file").write_bytes(DATA)
    return tmp_path / "file"


def test_a_file_is_hashed_in_steps(path):
    running = FileHash(ChecksumKind.MD5, path)
    assert [running.read_to(end) for end in (10, 10, CHUNK_BYTES + 7)] == [True, False, True]
    assert running.position == CHUNK_BYTES + 7
    assert running.digest(len(DATA)) == hashlib.md5(DATA, usedforsecurity=False).digest()


def test_after_a_change_it_starts_again(path):
    running = FileHash(ChecksumKind.SHA256, path)
    running.read_to(1000)
    path.write_bytes(DATA[::-1])
    running.restart()
    assert running.digest(len(DATA)) == hashlib.sha256(DATA[::-1]).digest()


def test_a_file_that_is_gone_is_an_error(tmp_path):
    running = FileHash(ChecksumKind.MD5, tmp_path / "missing")
    assert not running.read_to(0)
    with pytest.raises(FileNotFoundError):
        running.read_to(1)
