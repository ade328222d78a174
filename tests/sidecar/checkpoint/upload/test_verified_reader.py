import os

import pytest
import xxhash
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podferry.contract.errors import Changed, Refused
from podferry.sidecar.checkpoint.upload import verified_reader as module
from podferry.sidecar.checkpoint.upload.verified_reader import VerifiedReader
from podferry.sidecar.runtime.file_identity import FileIdentity
from podferry.storage.multipart import part_bytes_for

reusing = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
GIB = 1 << 30


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(module, "READ_BYTES", 300)


def reading(path, part_bytes=1000):
    return VerifiedReader(path, FileIdentity.of(path.stat()), part_bytes)


def overwrite(path, at, data, *, same_time):
    """Write in place, and pretend that nothing happened."""
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)
    os.utime(path, ns=(0, before.st_mtime_ns if same_time else before.st_mtime_ns + 1))


@settings(deadline=None)
@given(st.integers(0, 5000 * GIB), st.integers(1, 64 << 20), st.integers(1, 8 << 20))
def test_every_byte_is_in_exactly_one_part(size, wished, least):
    class Parts:
        max_parts = 10_000

    Parts.min_part_bytes = least
    part_bytes = part_bytes_for(size, wished, Parts)
    one = VerifiedReader(None, FileIdentity(1, size, 1), part_bytes)
    assert 1 <= one.count <= Parts.max_parts
    assert part_bytes >= max(least, min(wished, size))
    end = 0
    for number in {1, 2, one.count // 2, one.count - 1, one.count} & set(range(1, one.count + 1)):
        start, length = one.span(number)
        assert start == (number - 1) * part_bytes
        assert length == part_bytes or number == one.count
        end = max(end, start + length)
    assert end == size
    assert one.span(one.count)[1] > 0 or size == 0


@reusing
@given(st.integers(0, 3001), st.integers(1, 3100))
def test_fingerprints_cover_the_file_and_each_part(tmp_path, size, part_bytes):
    path = tmp_path / "w"
    data = os.urandom(size)
    path.write_bytes(data)
    one = reading(path, part_bytes)
    found = one.fingerprint()
    pieces = [data[start : start + part_bytes] for start in range(0, size, part_bytes)] or [b""]
    assert found.xxh128 == xxhash.xxh3_128_hexdigest(data)
    assert found.parts == tuple(map(xxhash.xxh3_128_hexdigest, pieces))
    assert list(one.body(found)) == pieces


@reusing
@given(st.integers(0, 2999), st.booleans())
def test_no_part_of_another_content_is_ever_given_out(tmp_path, at, same_time):
    path = tmp_path / "w"
    path.write_bytes(b"1" * 3000)
    one = reading(path)
    fingerprint = one.fingerprint()
    overwrite(path, at, b"2", same_time=same_time)
    given_out = []
    with pytest.raises(Changed):
        given_out.extend(one.body(fingerprint))
    assert b"".join(given_out) == b"1" * (at // 1000 * 1000 if same_time else 0)


def test_a_part_is_returned_only_from_the_file_that_was_held(tmp_path):
    path = tmp_path / "w"
    path.write_bytes(b"1" * 3000)
    one = reading(path)
    parts = one.fingerprint().parts
    overwrite(path, 2999, b"2", same_time=True)
    assert one.part(1, parts[0]) == b"1" * 1000
    overwrite(path, 2999, b"1", same_time=False)
    with pytest.raises(Changed, match="while it was being read"):
        one.part(1, parts[0])


def test_a_file_that_is_no_longer_what_was_held_has_no_fingerprint(tmp_path):
    path = tmp_path / "w"
    path.write_bytes(b"1")
    one = reading(path)
    path.write_bytes(b"22")
    with pytest.raises(Changed, match="while it was being read"):
        one.fingerprint()


@pytest.mark.parametrize("size", [0, 500, 1000, 1500, 2999])
def test_a_file_that_became_shorter_has_changed(tmp_path, size):
    path = tmp_path / "w"
    path.write_bytes(b"1" * 3000)
    one = reading(path)
    fingerprint = one.fingerprint()
    os.truncate(path, size)
    with pytest.raises(Changed):
        one.fingerprint()
    with pytest.raises(Changed):
        list(one.body(fingerprint))


def test_a_removed_file_has_changed(tmp_path):
    path = tmp_path / "w"
    path.write_bytes(b"1")
    one = reading(path)
    path.unlink()
    with pytest.raises(Changed, match="was removed"):
        one.part(1, "")


def test_what_cannot_be_read_is_refused_with_the_reason(tmp_path):
    (tmp_path / "w").mkdir()
    with pytest.raises(Refused, match=r"w cannot be read .*directory"):
        reading(tmp_path / "w").fingerprint()


def test_a_file_system_that_gives_less_than_was_asked_for_is_asked_again(tmp_path, monkeypatch):
    path = tmp_path / "w"
    path.write_bytes(os.urandom(3000))
    one = reading(path)
    fingerprint = one.fingerprint()

    class Scant:
        def __init__(self, file):
            self._file = file

        def read(self, count):
            return self._file.read(min(count, 7))

        def __getattr__(self, name):
            return getattr(self._file, name)

    opened = VerifiedReader._opened.__wrapped__

    def scantly(self):
        for file in opened(self):
            yield Scant(file)

    monkeypatch.setattr(VerifiedReader, "_opened", module.contextmanager(scantly))
    assert b"".join(one.body(fingerprint)) == path.read_bytes()
