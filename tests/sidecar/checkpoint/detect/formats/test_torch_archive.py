import pickle
import re
import zipfile

import pytest

from podferry.sidecar.checkpoint.detect.format_checks import check_format
from podferry.sidecar.checkpoint.detect.formats.pickle_check import ONE_PICKLE
from podferry.sidecar.checkpoint.detect.formats.verdict import COMPLETE, INCONCLUSIVE
from tests.support.format_samples import SAMPLES, archive_with, archive_without, cut, passed

SAVED = ["state.pt", "protocol5.pt", "dtypes.pt"]


def records(name):
    with zipfile.ZipFile(SAMPLES / name) as archive:
        return {one.filename: one.file_size for one in archive.infolist()}


def verdict(path, data):
    path.write_bytes(data)
    return check_format(path)


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".ckpt", ".bin", ".pkl", ".pth.tar", ".tar"])
@pytest.mark.parametrize("name", SAVED)
def test_a_complete_archive_is_certain(tmp_path, name, suffix):
    assert verdict(tmp_path / f"w{suffix}", (SAMPLES / name).read_bytes()) == COMPLETE


@pytest.mark.parametrize("name", SAVED)
def test_an_archive_without_any_of_its_storages_is_a_defect(tmp_path, name):
    storages = [one for one in records(name) if re.search(r"/data/\d+$", one)]
    assert len(storages) > 5
    for storage in storages:
        found = verdict(tmp_path / "w.pt", archive_without(SAMPLES / name, storage))
        assert found.defect == f"its data.pkl references {storage.partition('/')[2]}, which is missing"


@pytest.mark.parametrize("name", SAVED)
def test_a_storage_of_another_size_is_a_defect(tmp_path, name):
    storages = [one for one, size in records(name).items() if re.search(r"/data/\d+$", one) and size]
    for storage in storages:
        size = records(name)[storage]
        for wrong in (0, size - 1, size + 16):
            data = archive_with(SAMPLES / name, storage, bytes(wrong))
            assert "data.pkl says" in verdict(tmp_path / "w.pt", data).defect


def test_an_archive_whose_pickle_was_never_written_is_a_defect(tmp_path):
    """torch writes the records of its frame even if pickling fails."""
    data = archive_without(SAMPLES / "state.pt", "/data.pkl", *(f"/data/{key}" for key in range(99)))
    assert verdict(tmp_path / "w.pt", data).defect == "its data.pkl is not written yet"


def test_a_pickle_that_is_cut_short_is_a_defect(tmp_path):
    with zipfile.ZipFile(SAMPLES / "state.pt") as archive:
        pickled = archive.read("state/data.pkl")
    for length in range(0, len(pickled), 7):
        data = archive_with(SAMPLES / "state.pt", "state/data.pkl", pickled[:length])
        assert verdict(tmp_path / "w.pt", data).defect is not None


def test_an_archive_that_may_lack_something_shows_its_members(tmp_path):
    for data in (
        archive_without(SAMPLES / "state.pt", "/version"),
        archive_without(SAMPLES / "state.pt", "/data.pkl"),
        (SAMPLES / "script.pt").read_bytes(),
    ):
        found = verdict(tmp_path / "w.pt", data)
        with zipfile.ZipFile(tmp_path / "w.pt") as archive:
            members = {(one.filename, one.file_size) for one in archive.infolist()}
        assert (found.defect, found.conclusive, set(found.members)) == (None, False, members)


def test_an_unknown_reference_is_not_certain(tmp_path):
    with zipfile.ZipFile(SAMPLES / "state.pt") as archive:
        pickled = archive.read("state/data.pkl")
    data = archive_with(
        SAMPLES / "state.pt", "state/data.pkl", pickled.replace(b"FloatStorage", b"BloatStorage")
    )
    found = verdict(tmp_path / "w.pt", data)
    assert (found.defect, found.conclusive) == (None, False)
    assert found.members


@pytest.mark.parametrize("name", [*SAVED, "script.pt"])
def test_every_truncation_is_a_defect(tmp_path, name):
    data = (SAMPLES / name).read_bytes()
    assert passed(cut(tmp_path / "w.pt", data)) == []
    assert passed(cut(tmp_path / "w.bin", data, range(1, len(data), 97))) == []
    assert passed(cut(tmp_path / "w.pth.tar", data, range(0, len(data), 97))) == []


def test_the_older_format_is_inconclusive(tmp_path):
    assert check_format(SAMPLES / "older.pt") == INCONCLUSIVE
    assert verdict(tmp_path / "w.pth.tar", (SAMPLES / "older.pt").read_bytes()) == INCONCLUSIVE


def test_a_pickle_named_like_a_tar_archive_is_judged_as_one(tmp_path):
    data = pickle.dumps({"epoch": 1})
    assert verdict(tmp_path / "w.pth.tar", data) == ONE_PICKLE
    assert verdict(tmp_path / "w.pth.tar", data[:-1]).defect == "its pickle has no end yet"
