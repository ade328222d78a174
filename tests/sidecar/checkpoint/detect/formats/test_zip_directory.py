import io
import struct
import zipfile

import pytest

from podferry.sidecar.checkpoint.detect.formats import zip_directory
from podferry.sidecar.checkpoint.detect.formats.verdict import Inconclusive, Torn
from podferry.sidecar.checkpoint.detect.formats.zip_directory import DEFLATED, STORED, read_members
from tests.support.format_samples import SAMPLES

CONTENT = {"ä/a": b"1" * 30, "b": b"", "c": b"abc" * 50}


def written(method=zipfile.ZIP_STORED, comment=b"", *, streamed=False, zip64=False) -> bytes:
    data = io.BytesIO()
    if streamed:
        data.seekable = lambda: False
    with zipfile.ZipFile(data, "w", method) as archive:
        for name, content in CONTENT.items():
            with archive.open(name, "w", force_zip64=zip64) as member:
                member.write(content)
        archive.comment = comment
    return data.getvalue()


def members(path, data):
    path.write_bytes(data)
    with path.open("rb") as file:
        return read_members(file)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("zip64", [False, True])
@pytest.mark.parametrize("comment", [b"", b"a comment", b"PK\x05\x06"])
def test_the_members_are_those_of_the_archive(tmp_path, streamed, zip64, comment):
    data = written(comment=comment, streamed=streamed, zip64=zip64)
    if comment.startswith(b"PK"):  # the last of the two decides, as in zipfile
        with pytest.raises(Torn):
            members(tmp_path / "a.zip", data)
        return
    found = members(tmp_path / "a.zip", data)
    assert {one.name: data[one.start : one.start + one.size] for one in found} == CONTENT
    assert {one.method for one in found} == {STORED}


def test_sizes_are_given_before_and_after_unpacking(tmp_path):
    found = {one.name: one for one in members(tmp_path / "a.zip", written(zipfile.ZIP_DEFLATED))}
    assert (found["c"].method, found["c"].size) == (DEFLATED, 150)
    assert found["c"].packed_size < 150


def test_directories_with_64_bit_offsets_are_read():
    """torch always writes them."""
    with (SAMPLES / "state.pt").open("rb") as file:
        found = read_members(file)
    assert {one.name: one.size for one in found} == {
        one.filename: one.file_size for one in zipfile.ZipFile(SAMPLES / "state.pt").infolist()
    }


def test_sizes_beyond_32_bits_are_read(tmp_path):
    size = 5 << 30
    path = tmp_path / "large.zip"
    with zipfile.ZipFile(path, "w") as archive, archive.open("zeros", "w", force_zip64=True) as member:
        member.write(b"1")
    data = bytearray(path.read_bytes())
    directory = data.index(b"PK\x01\x02")
    extra = struct.pack("<2H2Q", 1, 16, size, size)
    header = bytearray(data[directory : directory + 46])
    struct.pack_into("<2I", header, 20, 0xFFFFFFFF, 0xFFFFFFFF)
    struct.pack_into("<H", header, 30, len(extra))
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 1, 1, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    start = directory + size - 1
    record = struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, 46 + 5 + len(extra), start)
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, start + 46 + 5 + len(extra), 1)
    with path.open("r+b") as file:
        file.truncate(directory)
        file.seek(start)
        file.write(header + b"zeros" + extra + record + locator + end)
    with path.open("rb") as file:
        assert [(one.name, one.size) for one in read_members(file)] == [("zeros", size)]


def test_every_truncation_is_torn(tmp_path):
    data = written()
    for length in range(len(data)):
        with pytest.raises(Torn):
            members(tmp_path / "a.zip", data[:length])


def test_the_end_of_an_inner_archive_is_not_its_own(tmp_path):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("inner.zip", written())
        archive.writestr("after", b"1")
    outer = data.getvalue()
    with pytest.raises(Torn):
        members(tmp_path / "a.zip", outer[: outer.index(b"PK\x05\x06") + 22])


@pytest.mark.parametrize("mark", [b"PK\x03\x04", b"PK\x01\x02"])
def test_members_must_be_where_the_directory_says(tmp_path, mark):
    data = written()
    at = data.rindex(mark)
    with pytest.raises(Torn):
        members(tmp_path / "a.zip", data[:at] + b"XX" + data[at + 2 :])


def test_members_must_not_overlap(tmp_path):
    data = bytearray(written())
    entry = data.index(b"PK\x01\x02")
    struct.pack_into("<2I", data, entry + 20, 5000, 5000)
    with pytest.raises(Torn, match="ä/a is not where"):
        members(tmp_path / "a.zip", bytes(data))


def test_stored_members_have_one_size(tmp_path):
    data = bytearray(written())
    struct.pack_into("<I", data, data.index(b"PK\x01\x02") + 24, 31)
    with pytest.raises(Torn, match="30 bytes, its directory says 31"):
        members(tmp_path / "a.zip", bytes(data))


def test_too_many_members_are_inconclusive(tmp_path, monkeypatch):
    monkeypatch.setattr(zip_directory, "MAX_MEMBERS", 2)
    with pytest.raises(Inconclusive):
        members(tmp_path / "a.zip", written())


def test_an_archive_may_be_empty(tmp_path):
    assert members(tmp_path / "a.zip", b"PK\x05\x06" + bytes(18)) == []
