import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save, save_file

from podferry.sidecar.checkpoint.detect.format_checks import check_format
from podferry.sidecar.checkpoint.detect.formats import safetensors as checked
from podferry.sidecar.checkpoint.detect.formats.file_holes import HOLES
from podferry.sidecar.checkpoint.detect.formats.verdict import COMPLETE
from tests.support.format_samples import cut, passed

ARRAYS = {"weight": np.arange(12.0).reshape(3, 4), "bias": np.zeros(3)}
MIB = 1 << 20


def test_a_file_of_the_library_is_certain(tmp_path):
    path = tmp_path / "w.safetensors"
    save_file(ARRAYS, path, {"format": "np"})
    assert check_format(path) == COMPLETE


def test_every_truncation_is_a_defect(tmp_path):
    assert passed(cut(tmp_path / "w.safetensors", save(ARRAYS))) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.binary(min_size=1, max_size=9))
def test_trailing_bytes_are_a_defect(tmp_path, more):
    path = tmp_path / "w.safetensors"
    path.write_bytes(save(ARRAYS) + more)
    assert check_format(path).defect is not None


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 30) + b'{"a":{"data_offsets":[0,"5"]}}',
        struct.pack("<Q", 26) + b'{"a":{"data_offsets":[0]}}',
    ],
)
def test_a_damaged_header_is_a_defect(tmp_path, data):
    (tmp_path / "w.safetensors").write_bytes(data)
    assert check_format(tmp_path / "w.safetensors").defect == "its header is damaged"


@pytest.fixture
def consolidated(tmp_path):
    """Like torch's consolidation: the header first, the last tensor before the others."""
    data = save({"a": np.ones(MIB, "u1"), "b": np.ones(MIB, "u1")})
    path = tmp_path / "w.safetensors"
    with path.open("wb") as file:
        file.write(data[: -2 * MIB])
        file.seek(len(data) - MIB)
        file.write(data[-MIB:])
    if path.stat().st_blocks * 512 >= len(data):
        pytest.skip("this file system has no holes")
    return path, data


def test_a_file_of_full_size_with_holes_is_a_defect(consolidated, monkeypatch):
    path, data = consolidated
    monkeypatch.setattr(checked, "zeros_stay_written", lambda _: True)
    assert "never written" in check_format(path).defect
    path.write_bytes(data)
    assert check_format(path) == COMPLETE


def test_where_zeros_become_holes_they_are_compared(consolidated, monkeypatch):
    monkeypatch.setattr(checked, "zeros_stay_written", lambda _: False)
    found = check_format(consolidated[0])
    assert (found.defect, found.conclusive) == (None, False)
    assert dict(found.members)[HOLES] > MIB // 2
