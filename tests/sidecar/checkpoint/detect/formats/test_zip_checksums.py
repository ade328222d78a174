"""Archives of two saves."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from podferry.sidecar.checkpoint.detect.formats.zip_checksums import has_checksums

FIRST = 31
"""Where the bytes of the first member begin, whose name has one byte."""
SAMPLES = Path(__file__).parents[4] / "data" / "formats"


def archive(byte: int, method: int = zipfile.ZIP_STORED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as file:
        for name in "ab":
            file.writestr(name, bytes([byte]) * 1000)
    return data.getvalue()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_each_mixture_of_two_archives_has_checksums(tmp_path: Path, method: int) -> None:
    old, new, path = archive(1, method), archive(2, method), tmp_path / "w.zip"
    assert len(old) == len(new)
    same = next(at for at in range(FIRST, len(old)) if old[at] != new[at])
    until = len(old) - next(at for at in range(1, len(old)) if old[-at] != new[-at])
    for length in range(0, len(new) + 1, 7):
        path.write_bytes(new[:length] + old[length:])
        assert has_checksums(path) is not (same < length <= until)


def test_other_files_have_none(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(b"raw")
    assert has_checksums(tmp_path / "w") is None
    assert has_checksums(tmp_path / "gone") is False


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.pt")) + sorted(SAMPLES.glob("*.npz")))
def test_archives_of_libraries_have_their_checksums(path: Path) -> None:
    assert has_checksums(path) is (None if path.stem == "older" else True)
