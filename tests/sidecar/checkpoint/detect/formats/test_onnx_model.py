import shutil

import pytest

from podferry.sidecar.checkpoint.detect.format_checks import check_format
from podferry.sidecar.checkpoint.detect.formats import onnx_model
from podferry.sidecar.checkpoint.detect.formats.verdict import INCONCLUSIVE
from tests.support.format_samples import SAMPLES, cut, passed

INSIDE, OUTSIDE = "inside.onnx", "outside.onnx"
IMPORT = b"B\x04\n\x00\x10\x14"
"""The first of the two operator sets, the fields after the graph."""


def verdict(path, data):
    path.write_bytes(data)
    return check_format(path)


@pytest.fixture
def outside(tmp_path):
    for name in (OUTSIDE, f"{OUTSIDE}.data"):
        shutil.copy(SAMPLES / name, tmp_path / name)
    return tmp_path / OUTSIDE


@pytest.mark.parametrize("name", [INSIDE, OUTSIDE])
def test_a_model_may_lack_its_last_fields(name):
    assert check_format(SAMPLES / name) == INCONCLUSIVE


def test_a_truncation_is_a_defect_unless_it_is_between_two_fields_at_the_end(outside):
    data = outside.read_bytes()
    assert passed(cut(outside, data)) == [data.index(IMPORT) + len(IMPORT)]


def test_external_data_must_exist(outside):
    outside.with_name(f"{OUTSIDE}.data").unlink()
    assert check_format(outside).defect == "its data file outside.onnx.data is missing"


def test_external_data_must_have_its_size(outside):
    data = outside.with_name(f"{OUTSIDE}.data")
    data.write_bytes(data.read_bytes()[:-1])
    assert (
        check_format(outside).defect == "its data file outside.onnx.data has 1599 bytes, the model needs 1600"
    )


@pytest.mark.parametrize("name", [b"/outside.onnx_data", b"../utside.onnx.data"])
def test_names_that_onnx_refuses_are_inconclusive(outside, name):
    data = outside.read_bytes()
    outside.with_name(f"{OUTSIDE}.data").unlink()
    changed = data.replace(b"outside.onnx.data", name[:17])
    assert verdict(outside, changed) == INCONCLUSIVE


@pytest.mark.parametrize("data", [b"of another kind", b"\x08\x0a\x3b", b"\x08" + b"\xff" * 20])
def test_another_format_is_inconclusive(tmp_path, data):
    assert verdict(tmp_path / "w.onnx", data) == INCONCLUSIVE


def test_too_many_fields_are_inconclusive(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_model, "MAX_FIELDS", 5)
    assert check_format(SAMPLES / INSIDE) == INCONCLUSIVE


def test_an_empty_file_has_just_begun(tmp_path):
    assert verdict(tmp_path / "w.onnx", b"").defect == "it is empty"
