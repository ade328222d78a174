import pytest

from podferry.sidecar.checkpoint.detect.format_checks import check_format
from podferry.sidecar.checkpoint.detect.formats import ubjson
from podferry.sidecar.checkpoint.detect.formats.verdict import COMPLETE, INCONCLUSIVE
from tests.support.format_samples import SAMPLES, cut, passed


def verdict(path, data):
    path.write_bytes(data)
    return check_format(path)


@pytest.mark.parametrize("suffix", [".ubj", ".bst"])
def test_a_model_of_xgboost_is_certain(tmp_path, suffix):
    assert verdict(tmp_path / f"w{suffix}", (SAMPLES / "trees.ubj").read_bytes()) == COMPLETE


def test_every_truncation_is_a_defect(tmp_path):
    assert passed(cut(tmp_path / "w.ubj", (SAMPLES / "trees.ubj").read_bytes())) == []


EVERY_KIND = (
    b"{i\x01aZU\x01bT" + b"I\x00\x01cF" + b"l\x00\x00\x00\x01dN" + b"L" + bytes(7) + b"\x01eD" + b"1" * 8
    + b"i\x01fSi\x03abc" + b"i\x01gHi\x011" + b"i\x01hCx" + b"i\x01j[i\x01d1234Si\x00]" + b"i\x01k[#i\x02TF"
    + b"i\x01l[$d#i\x02" + b"1" * 8 + b"i\x01m{#i\x01i\x01xZ" + b"i\x01n[[]{}]" + b"}"
)  # fmt: skip


def test_every_kind_of_value_is_walked(tmp_path):
    assert verdict(tmp_path / "w.ubj", EVERY_KIND) == COMPLETE
    assert passed(cut(tmp_path / "w.ubj", EVERY_KIND)) == []


@pytest.mark.parametrize(
    "data",
    [
        b"binf of another kind",
        b"{x",
        b"{i\x01ax}",
        b"{i\xff}",
        b"{i\x01a[$Si\x01}",
        b"{i\x01a[$S#i\x01i\x00}",
        b"{i\x01a{$i#i\x01i\x01b\x00}",
        EVERY_KIND + b"more",
    ],
)
def test_other_content_is_inconclusive(tmp_path, data):
    assert verdict(tmp_path / "w.ubj", data) == INCONCLUSIVE


def test_too_many_values_are_inconclusive(tmp_path, monkeypatch):
    monkeypatch.setattr(ubjson, "MAX_VALUES", 5)
    assert verdict(tmp_path / "w.ubj", EVERY_KIND) == INCONCLUSIVE
