import pytest

from podferry.sidecar.checkpoint.detect.format_checks import check_format
from podferry.sidecar.checkpoint.detect.formats.hdf5 import SIGNATURE
from podferry.sidecar.checkpoint.detect.formats.verdict import INCONCLUSIVE
from tests.support.format_samples import SAMPLES, cut, passed

NAMES = ["older.h5", "newer.h5", "block.hdf5", "pages.h5"]
UNCLOSED_END = {"older.h5": 2048, "newer.h5": 195, "block.hdf5": 3072, "pages.h5": 4096}
"""The end in the superblock while h5py still had these files open."""


def verdict(path, data):
    path.write_bytes(data)
    return check_format(path)


@pytest.mark.parametrize("name", NAMES)
def test_a_closed_file_may_still_lack_datasets(name):
    assert check_format(SAMPLES / name) == INCONCLUSIVE


@pytest.mark.parametrize("name", NAMES)
def test_every_truncation_is_a_defect(tmp_path, name):
    assert passed(cut(tmp_path / name, (SAMPLES / name).read_bytes())) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_was_not_closed_is_a_defect_at_its_full_size(tmp_path, name):
    data = (SAMPLES / name).read_bytes()
    end, unclosed = len(data).to_bytes(8, "little"), UNCLOSED_END[name].to_bytes(8, "little")
    assert SIGNATURE in data[: data.index(end)]
    found = verdict(tmp_path / name, data.replace(end, unclosed, 1))
    assert found.defect == (
        f"its writer has not closed it: it has {len(data)} bytes, its superblock says {UNCLOSED_END[name]}"
    )


@pytest.mark.parametrize("name", NAMES)
def test_without_its_superblock_yet_it_is_a_defect_at_its_full_size(tmp_path, name):
    data = (SAMPLES / name).read_bytes()
    start = data.index(SIGNATURE)
    found = verdict(tmp_path / name, bytes(start + 96) + data[start + 96 :])
    assert found.defect == "its writer has not closed it"


def test_a_flag_says_that_somebody_writes(tmp_path):
    data = bytearray((SAMPLES / "newer.h5").read_bytes())
    assert data[8] == 3
    for flags, torn in ((0, False), (1, True), (5, True)):
        data[11] = flags
        assert (verdict(tmp_path / "w.h5", data).defect is not None) == torn


@pytest.mark.parametrize("data", [b"CDF\x01netCDF-3", SIGNATURE + b"\x09" + b"\x08" * 60, b"of another kind"])
def test_another_format_is_inconclusive(tmp_path, data):
    assert verdict(tmp_path / "w.nc", data) == INCONCLUSIVE


def test_an_empty_file_has_just_begun(tmp_path):
    assert verdict(tmp_path / "w.h5", b"").defect == "it is empty"
