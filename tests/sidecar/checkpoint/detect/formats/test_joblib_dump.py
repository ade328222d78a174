import pytest

from podferry.sidecar.checkpoint.detect.format_checks import check_format
from podferry.sidecar.checkpoint.detect.formats.verdict import INCONCLUSIVE
from tests.support.format_samples import SAMPLES, cut, passed


@pytest.mark.parametrize("name", ["raw.joblib", "zlib.joblib", "gzip.joblib"])
def test_a_dump_is_never_certain(name):
    assert check_format(SAMPLES / name) == INCONCLUSIVE


def test_a_compressed_dump_needs_its_last_byte(tmp_path):
    for name in ("zlib.joblib", "gzip.joblib"):
        data = (SAMPLES / name).read_bytes()
        assert passed(cut(tmp_path / "w.joblib", data, range(2, len(data)))) == []


def test_a_plain_dump_passes_only_after_a_byte_like_its_last(tmp_path):
    data = (SAMPLES / "raw.joblib").read_bytes()
    for length in passed(cut(tmp_path / "w.joblib", data, range(2, len(data)))):
        assert data[length - 1 : length] == b"."


@pytest.mark.parametrize("data", [b"BZh91AY&SY", b"\xfd7zXZ\x00", b"of another kind"])
def test_other_compressors_are_inconclusive(tmp_path, data):
    (tmp_path / "w.joblib").write_bytes(data)
    assert check_format(tmp_path / "w.joblib") == INCONCLUSIVE


def test_an_empty_file_has_just_begun(tmp_path):
    (tmp_path / "w.joblib").touch()
    assert check_format(tmp_path / "w.joblib").defect == "it is empty"
