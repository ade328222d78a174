import io
import json
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save, save_file

from podferry.sidecar.structure import STRUCTURES, TABLE_END, flaw, missing_shards

reusing = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
ARRAYS = {"weight": np.arange(12.0).reshape(3, 4), "bias": np.zeros(3)}


def savez() -> bytes:
    data = io.BytesIO()
    np.savez(data, **ARRAYS)
    return data.getvalue()


def nested() -> bytes:
    """An archive with another one in it, as they are: the inner one ends before the outer one does."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("inner.npz", savez())
        archive.writestr("after", b"1" * 50)
    return data.getvalue()


WHOLE = {
    "w.npz": savez(),
    "w.pt": nested(),
    "w.safetensors": save(ARRAYS),
    "w.json": json.dumps({"step": 5, "loss": [0.5, float("nan")]}, indent=1).encode(),
}


@pytest.mark.parametrize("name", WHOLE)
def test_what_the_real_libraries_write_is_whole(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(WHOLE[name])
    assert flaw(path) is None


def test_what_they_write_to_files_is_whole_too(tmp_path):
    np.savez_compressed(tmp_path / "c.npz", **ARRAYS)
    save_file(ARRAYS, tmp_path / "w.safetensors")
    assert [flaw(path) for path in tmp_path.iterdir()] == [None, None]


@pytest.mark.parametrize("name", WHOLE)
def test_truncated_anywhere_it_is_not(tmp_path, name):
    path = tmp_path / name
    for length in range(len(WHOLE[name])):
        path.write_bytes(WHOLE[name][:length])
        assert flaw(path) is not None, length


@reusing
@given(st.sampled_from(sorted(STRUCTURES)), st.binary(max_size=64))
@example(".safetensors", b"\x02" + b"\0" * 7 + b"[]")
@example(".safetensors", struct.pack("<Q", 30) + b'{"a":{"data_offsets":[0,"5"]}}')
@example(".safetensors", struct.pack("<Q", 26) + b'{"a":{"data_offsets":[0]}}')
@example(".json", b"[" * 100_000)
@example(".npz", b"PK\x03\x04PK\x05\x06" + b"\xff" * 18)
def test_no_bytes_make_a_check_fail(tmp_path, suffix, data):
    path = tmp_path / f"w{suffix}"
    path.write_bytes(data)
    assert flaw(path) is None or flaw(path)


@reusing
@given(st.binary(min_size=1, max_size=9))
def test_a_safetensors_file_that_goes_on_is_not_whole(tmp_path, more):
    path = tmp_path / "w.safetensors"
    path.write_bytes(WHOLE[path.name] + more)
    assert flaw(path) is not None


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("w.pt", b"\x80\x02older torch format"),
        ("w.bin", b""),
        ("w.pdparams", b"x"),
        ("w.bin", b"raw"),
        ("w.index", b"an index of another kind"),
        ("log.json", b'{"step": 1}\n{"step": 2}\n'),
        ("w.npz", b"PK\x05\x06" + b"\0" * 18),
    ],
)
def test_what_a_format_cannot_tell_passes(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    assert flaw(tmp_path / name) is None


def test_what_stands_for_anything_is_told_where_it_is_an_archive(tmp_path):
    for suffix in (".bin", ".pkl"):
        path = tmp_path / f"w{suffix}"
        path.write_bytes(savez())
        assert flaw(path) is None
        path.write_bytes(savez()[:-1])
        assert flaw(path) is not None


def test_an_index_of_tensorflow_has_its_mark_at_the_end(tmp_path):
    path = tmp_path / "c[1].index"
    (tmp_path / "c[1].data-00000-of-00001").touch()
    for data in (b"", b"12", b"the table" + TABLE_END[:-1]):
        path.write_bytes(data)
        assert flaw(path) == "its table has no end yet"
    path.write_bytes(b"the table" + TABLE_END)
    assert flaw(path) is None


def test_a_file_that_has_gone_is_told_as_such(tmp_path):
    assert "cannot be read" in flaw(tmp_path / "gone.pt")


def test_every_shard_that_an_index_lists_must_be_there(tmp_path):
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


def test_an_index_that_has_gone_lists_nothing(tmp_path):
    assert missing_shards(tmp_path, ["gone.index.json"]) is None
