import pytest

from podferry.sidecar.checkpoint.detect.format_checks import check_format
from podferry.sidecar.checkpoint.detect.formats import lightgbm_model
from podferry.sidecar.checkpoint.detect.formats.verdict import COMPLETE, INCONCLUSIVE
from tests.support.format_samples import SAMPLES, cut, passed

MODEL = (SAMPLES / "trees.txt").read_bytes()
BY_THE_LIBRARY = MODEL[: MODEL.index(b"\npandas_categorical:")]
"""Without what Python adds."""
NO_PARAMETERS = range(
    MODEL.index(b"end of trees\n") + len("end of trees\n"),
    MODEL.index(b"\nparameters:") + len("\nparameters:"),
)
"""Lengths at which it looks like a model without parameters, which LightGBM writes too."""


def verdict(path, data):
    path.write_bytes(data)
    return check_format(path)


def test_a_model_is_certain_with_its_last_line():
    assert check_format(SAMPLES / "trees.txt") == COMPLETE


def test_a_truncation_is_a_defect_unless_only_the_line_of_python_is_missing(tmp_path):
    lengths = passed(cut(tmp_path / "w.txt", MODEL, range(20, len(MODEL))))
    assert set(lengths) == {*NO_PARAMETERS, len(BY_THE_LIBRARY), len(BY_THE_LIBRARY) + 1}
    for length in lengths:
        assert verdict(tmp_path / "w.txt", MODEL[:length]) == INCONCLUSIVE


def test_a_snapshot_is_certain_if_python_wrote_it(tmp_path):
    path = tmp_path / "w.txt.snapshot_iter_100"
    assert verdict(path, MODEL) == COMPLETE
    assert verdict(path, BY_THE_LIBRARY) == INCONCLUSIVE
    lengths = set(range(len(BY_THE_LIBRARY))) - set(NO_PARAMETERS)
    assert passed(cut(path, BY_THE_LIBRARY, lengths)) == []


def test_categories_are_checked(tmp_path):
    before = MODEL.removesuffix(b"null\n")
    whole = before + b'[["a", "b"]]\n'
    assert verdict(tmp_path / "w.txt", whole) == COMPLETE
    assert passed(cut(tmp_path / "w.txt", whole, range(len(before), len(whole)))) == []


@pytest.mark.parametrize(
    "data", [b"", b"notes", b"tree\nversion=v2\nTree=0\n", MODEL[: MODEL.index(b"\nfeature_importances")]]
)
def test_other_text_is_inconclusive(tmp_path, data):
    assert verdict(tmp_path / "w.txt", data) == INCONCLUSIVE


def test_a_line_longer_than_what_is_read_is_inconclusive(tmp_path, monkeypatch):
    monkeypatch.setattr(lightgbm_model, "TAIL_BYTES", 50)
    assert verdict(tmp_path / "w.txt", MODEL.replace(b"null", b'["' + b"a" * 99 + b'"]')) == INCONCLUSIVE
