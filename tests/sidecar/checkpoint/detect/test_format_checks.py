import io
import json
import pickle
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save, save_file

from podferry.sidecar.checkpoint.detect.format_checks import (
    FORMAT_CHECKS,
    TABLE_END,
    check_format,
    missing_shards,
)


def defect(path):
    return check_format(path).defect


LEGACY_TORCH = (
    b"".join(pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, {"a": 1}, {"w": 2}, ["0"]))
    + struct.pack("<Q", 0x01580280)
    + b"X\xff\xff\xff\x7f"
)
"""torch's layout: pickles, then raw numbers, which may look like anything."""


reusing = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


ARRAYS = {"weight": np.arange(12.0).reshape(3, 4), "bias": np.zeros(3)}


def savez() -> bytes:
    data = io.BytesIO()
    np.savez(data, **ARRAYS)
    return data.getvalue()


def nested() -> bytes:
    """An archive that contains another one: the inner one ends before the outer one."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("inner.npz", savez())
        archive.writestr("after", b"1" * 50)
    return data.getvalue()


COMPLETE = {
    "w.npz": savez(),
    "w.pt": nested(),
    "w.safetensors": save(ARRAYS),
    "w.json": json.dumps({"step": 5, "loss": [0.5, float("nan")]}, indent=1).encode(),
}


@pytest.mark.parametrize("name", COMPLETE)
def test_files_of_the_real_libraries_are_complete(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(COMPLETE[name])
    assert defect(path) is None


def test_files_that_the_libraries_write_themselves_are_complete(tmp_path):
    np.savez_compressed(tmp_path / "c.npz", **ARRAYS)
    save_file(ARRAYS, tmp_path / "w.safetensors")
    assert [defect(path) for path in tmp_path.iterdir()] == [None, None]


@pytest.mark.parametrize("name", COMPLETE)
def test_any_truncation_is_detected(tmp_path, name):
    path = tmp_path / name
    for length in range(len(COMPLETE[name])):
        path.write_bytes(COMPLETE[name][:length])
        assert defect(path) is not None, length


@reusing
@given(st.sampled_from(sorted(FORMAT_CHECKS)), st.binary(max_size=64))
@example(".safetensors", b"\x02" + b"\0" * 7 + b"[]")
@example(".safetensors", struct.pack("<Q", 30) + b'{"a":{"data_offsets":[0,"5"]}}')
@example(".safetensors", struct.pack("<Q", 26) + b'{"a":{"data_offsets":[0]}}')
@example(".json", b"[" * 100_000)
@example(".npz", b"PK\x03\x04PK\x05\x06" + b"\xff" * 18)
def test_no_content_makes_a_check_raise(tmp_path, suffix, data):
    path = tmp_path / f"w{suffix}"
    path.write_bytes(data)
    assert defect(path) is None or defect(path)


@reusing
@given(st.binary(min_size=1, max_size=9))
def test_a_safetensors_file_with_trailing_bytes_is_incomplete(tmp_path, more):
    path = tmp_path / "w.safetensors"
    path.write_bytes(COMPLETE[path.name] + more)
    assert defect(path) is not None


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("w.pt", LEGACY_TORCH),
        ("w.pth", LEGACY_TORCH),
        ("w.pkl", LEGACY_TORCH),
        ("w.ckpt", b"of another kind"),
        ("w.ckpt", b"\x80\x06of another kind"),
        ("w.joblib", b"\x78\x9ccompressed"),
        ("w.bin", b""),
        ("w.pdparams", b"x"),
        ("w.pdparams", bytes(64)),
        ("w.pkl", pickle.dumps(1) + b"and more"),
        ("w.pkl", b"BZh91AY&SY"),
        ("w.pkl", b"\x1f\x8b"),
        ("w.pkl", b"\x80\x02T\xff\xff\xff\xff."),
        ("w.bin", b"raw"),
        ("w.index", b"an index of another kind"),
        ("log.json", b'{"step": 1}\n{"step": 2}\n'),
        ("w.npz", b"PK\x05\x06" + b"\0" * 18),
    ],
)
def test_inconclusive_formats_have_no_defect(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    assert defect(tmp_path / name) is None


def test_an_archive_under_a_generic_suffix_is_checked(tmp_path):
    for suffix in (".bin", ".pkl"):
        path = tmp_path / f"w{suffix}"
        path.write_bytes(savez())
        assert defect(path) is None
        path.write_bytes(savez()[:-1])
        assert defect(path) is not None


def test_a_tensorflow_index_ends_with_its_marker(tmp_path):
    path = tmp_path / "c[1].index"
    (tmp_path / "c[1].data-00000-of-00001").touch()
    for data in (b"", b"12", b"the table" + TABLE_END[:-1]):
        path.write_bytes(data)
        assert defect(path) == "its table has no end marker yet"
    path.write_bytes(b"the table" + TABLE_END)
    assert defect(path) is None


def test_a_deleted_file_is_reported_as_unreadable(tmp_path):
    assert "cannot be read" in defect(tmp_path / "gone.pt")


def test_every_shard_in_an_index_must_exist(tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "m.safetensors.index.json").write_bytes(
        b'{"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors", "c": "m-1.safetensors"}}'
    )
    names = ["s/m.safetensors.index.json", "s/m-1.safetensors"]
    assert "s/m-2.safetensors" in missing_shards(tmp_path, names)
    assert missing_shards(tmp_path, [*names, "s/m-2.safetensors"]) is None


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"weight_map": null}', '{"weight_map": [1]}', "{", "[" * 99999]
)
def test_an_index_of_another_kind_lists_nothing(tmp_path, text):
    (tmp_path / "x.index.json").write_text(text)
    assert missing_shards(tmp_path, ["x.index.json"]) is None


def test_a_deleted_index_lists_nothing(tmp_path):
    assert missing_shards(tmp_path, ["gone.index.json"]) is None
