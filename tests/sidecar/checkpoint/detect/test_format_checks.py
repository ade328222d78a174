import io
import json
import os
import pickle
import pickletools
import struct
import zipfile

import joblib
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save, save_file

from podferry.sidecar.checkpoint.detect.format_checks import (
    FORMAT_CHECKS,
    INCONCLUSIVE,
    TABLE_END,
    check_format,
    missing_shards,
)
from podferry.sidecar.checkpoint.detect.pickle_check import LENGTH_FORMATS


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


def leaves():
    arrays = st.builds(
        lambda size, kind: np.arange(size).astype(kind),
        st.integers(0, 40),
        st.sampled_from(["f4", "i8", "U3", "O", "M8[s]"]),
    )
    numbers = st.integers() | st.floats(allow_nan=False) | st.complex_numbers(allow_nan=False)
    texts = st.text(max_size=20) | st.binary(max_size=300) | st.builds(bytearray, st.binary(max_size=20))
    return numbers | texts | arrays | st.none() | st.booleans() | st.just(range(3)) | st.just(2**3000)


def nestings():
    return st.recursive(
        leaves(),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.text(max_size=5), inner, max_size=4)
            | st.tuples(inner, inner)
        ),
        max_leaves=8,
    )


def check_cuts(path, data, lengths):
    path.write_bytes(data)
    assert check_format(path) == (None, True)
    for length in sorted(lengths, reverse=True):
        os.truncate(path, length)
        assert defect(path) is not None, length


@settings(reusing, deadline=None)
@given(nestings(), st.sampled_from([".pdparams", ".pdopt", ".pkl", ".pickle"]), st.integers(0, 5), st.data())
def test_a_pickle_needs_its_last_byte(tmp_path, value, suffix, protocol, chance):
    data = pickle.dumps(value, protocol)
    inside = st.integers(0, len(data) - 1)
    cuts = {0, len(data) // 2, len(data) - 1, *chance.draw(st.lists(inside, max_size=30))}
    check_cuts(tmp_path / f"w{suffix}", data, cuts)


@pytest.mark.parametrize("protocol", range(6))
def test_a_large_pickle_needs_its_last_byte(tmp_path, protocol):
    value = {"w": np.arange(30_000.0), "text": "." * 70_000, "lines": b"\n" * 300, "steps": list(range(300))}
    data = pickle.dumps(value, protocol)
    size = len(data)
    check_cuts(tmp_path / "w.pdparams", data, {*range(200), *range(0, size, 5003), *range(size - 200, size)})


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".ckpt"])
def test_a_pickle_under_an_archive_suffix_needs_a_protocol_header(tmp_path, suffix):
    data = pickle.dumps({"w": b"1" * 500}, 4)
    check_cuts(tmp_path / f"w{suffix}", data, range(2, len(data)))


def test_pickles_may_follow_one_another(tmp_path):
    one, two = pickle.dumps({"a": 1.5}), pickle.dumps(b"2" * 300)
    check_cuts(tmp_path / "w.pkl", one + two, range(len(one) + 1, len(one + two)))


def test_large_arguments_are_skipped_unread(tmp_path):
    path = tmp_path / "w.pdparams"
    head = b"\x80\x04\x8e" + struct.pack("<Q", 1 << 40)
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + (1 << 40))
        file.seek(0, 2)
        file.write(b".")
    assert check_format(path) == (None, True)
    with path.open("r+b") as file:
        file.truncate(1 << 40)
    assert defect(path) == "its pickle has no end yet"
    path.write_bytes(b"\x80\x04\x8e" + b"\xff" * 8 + b".")
    assert defect(path) == "its pickle has no end yet"


def test_after_the_opcode_limit_the_last_byte_decides(tmp_path, monkeypatch):
    monkeypatch.setattr("podferry.sidecar.checkpoint.detect.pickle_check.MAX_OPCODES", 1000)
    path = tmp_path / "w.pkl"
    data = pickle.dumps(list(range(5000)))
    path.write_bytes(data)
    assert check_format(path) == (None, True)
    path.write_bytes(data[:-1])
    assert defect(path) == "its pickle has no end yet"


def test_every_argument_of_every_opcode_can_be_skipped():
    """A new Python may add another kind of argument."""
    kinds = {opcode.arg.n for opcode in pickletools.opcodes if opcode.arg is not None}
    assert all(kind >= 0 or kind == pickletools.UP_TO_NEWLINE or kind in LENGTH_FORMATS for kind in kinds)
    pairs = [opcode.arg for opcode in pickletools.opcodes if opcode.arg and "pair" in opcode.arg.name]
    assert set(pairs) == {pickletools.stringnl_noescape_pair}


def test_nothing_in_a_pickle_is_loaded(tmp_path):
    class Trap:
        def __reduce__(self):
            return (tmp_path / "sprung").touch, ()

    (tmp_path / "w.pkl").write_bytes(pickle.dumps(Trap()))
    assert check_format(tmp_path / "w.pkl") == (None, True)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("compress", [0, 3])
def test_a_joblib_dump_ends_like_a_pickle(tmp_path, compress):
    path = tmp_path / "w.joblib"
    joblib.dump(ARRAYS, path, compress=compress)
    assert check_format(path) == INCONCLUSIVE
    data = path.read_bytes()
    path.write_bytes(data[: data.index(data[-40:]) + 39])
    assert (defect(path) is None) == bool(compress)
    path.write_bytes(b"")
    assert defect(path) == "it is empty"


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
