import json
import zipfile

import pytest

from podferry.sidecar.checkpoint.detect.format_checks import check_format
from podferry.sidecar.checkpoint.detect.formats.verdict import COMPLETE, INCONCLUSIVE
from tests.support.format_samples import SAMPLES, archive_with, archive_without, cut, passed

DENSE, LOOKUP = SAMPLES / "dense.keras", SAMPLES / "lookup.keras"
WEIGHTS = "model.weights.h5"


def verdict(path, data):
    path.write_bytes(data)
    return check_format(path)


def content(name):
    with zipfile.ZipFile(DENSE) as archive:
        return archive.read(name)


def changed(name, **values):
    return archive_with(DENSE, name, json.dumps(json.loads(content(name)) | values).encode())


def test_a_model_with_all_its_weights_is_certain():
    assert check_format(DENSE) == COMPLETE


@pytest.mark.parametrize("archive", [DENSE, LOOKUP])
def test_every_truncation_is_a_defect(tmp_path, archive):
    assert passed(cut(tmp_path / "w.keras", archive.read_bytes())) == []


@pytest.mark.parametrize("name", ["metadata.json", "config.json", WEIGHTS])
def test_a_model_without_any_of_its_parts_is_a_defect(tmp_path, name):
    assert verdict(tmp_path / "w.keras", archive_without(DENSE, name)).defect == f"it has no {name} yet"


def test_weights_cut_short_are_a_defect(tmp_path):
    weights = content(WEIGHTS)
    for length in range(0, len(weights), 61):
        found = verdict(tmp_path / "w.keras", archive_with(DENSE, WEIGHTS, weights[:length]))
        assert found.defect.startswith(f"{WEIGHTS}: ")


def test_a_vocabulary_follows_the_weights_and_may_be_missing(tmp_path):
    whole, found = check_format(LOOKUP), verdict(tmp_path / "w.keras", archive_without(LOOKUP, ".txt"))
    assert (found.defect, found.conclusive, whole.defect, whole.conclusive) == (None, False, None, False)
    assert set(found.members) < set(whole.members)


@pytest.mark.parametrize("release", ["3.5.0", "3.0.1", "3", "dev", None])
def test_a_release_that_writes_weights_after_an_exception_is_not_certain(tmp_path, release):
    found = verdict(tmp_path / "w.keras", changed("metadata.json", keras_version=release))
    assert (found.defect, found.conclusive, len(found.members)) == (None, False, 3)


@pytest.mark.parametrize(
    "layer",
    [
        {"class_name": "Own", "module": "my.layers"},
        {"class_name": "TextVectorization", "module": "keras.layers"},
        {"class_name": "Own", "module": None},
    ],
)
def test_layers_that_may_have_files_of_their_own_are_not_certain(tmp_path, layer):
    found = verdict(tmp_path / "w.keras", changed("config.json", more=[{"inner": layer}]))
    assert (found.defect, found.conclusive) == (None, False)


def test_a_damaged_configuration_is_not_certain(tmp_path):
    for data in (b"[]", b"{", b"[" * 99_999):
        found = verdict(tmp_path / "w.keras", archive_with(DENSE, "metadata.json", data))
        assert (found.defect, found.conclusive) == (None, False)


def test_weights_in_another_format_are_not_certain(tmp_path):
    data = archive_without(DENSE, WEIGHTS)
    path = tmp_path / "w.keras"
    path.write_bytes(data)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("model.weights.npz", b"1")
    found = check_format(path)
    assert (found.defect, found.conclusive) == (None, False)


def test_older_releases_wrote_hdf5(tmp_path):
    data = (SAMPLES / "older.h5").read_bytes()
    assert verdict(tmp_path / "w.keras", data) == INCONCLUSIVE
    assert verdict(tmp_path / "w.keras", data[:-1]).defect is not None


def test_an_empty_file_has_just_begun(tmp_path):
    assert verdict(tmp_path / "w.keras", b"").defect == "it is empty"
