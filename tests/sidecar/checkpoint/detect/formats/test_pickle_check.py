import os
import pickle
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podferry.sidecar.checkpoint.detect.format_checks import check_format
from podferry.sidecar.checkpoint.detect.formats.pickle_check import ONE_PICKLE
from podferry.sidecar.checkpoint.detect.formats.verdict import INCONCLUSIVE, FormatVerdict


def defect(path):
    return check_format(path).defect


reusing = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


ARRAYS = {"weight": np.arange(12.0).reshape(3, 4), "bias": np.zeros(3)}


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


def check_cuts(path, data, lengths, whole=ONE_PICKLE):
    path.write_bytes(data)
    assert check_format(path) == whole
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


def test_of_several_pickles_the_last_may_be_missing(tmp_path):
    one, two = pickle.dumps({"a": 1.5}), pickle.dumps(b"2" * 300)
    whole = FormatVerdict(None, conclusive=False, members=(("pickles", 2),))
    check_cuts(tmp_path / "w.pkl", one + two, range(len(one) + 1, len(one + two)), whole)


def test_large_arguments_are_skipped_unread(tmp_path):
    path = tmp_path / "w.pdparams"
    head = b"\x80\x04\x8e" + struct.pack("<Q", 1 << 40)
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + (1 << 40))
        file.seek(0, 2)
        file.write(b".")
    assert check_format(path) == ONE_PICKLE
    with path.open("r+b") as file:
        file.truncate(1 << 40)
    assert defect(path) == "its pickle has no end yet"
    path.write_bytes(b"\x80\x04\x8e" + b"\xff" * 8 + b".")
    assert defect(path) == "its pickle has no end yet"


def test_after_the_opcode_limit_only_a_wrong_last_byte_is_certain(tmp_path, monkeypatch):
    monkeypatch.setattr("podferry.sidecar.checkpoint.detect.formats.pickle_walk.MAX_OPCODES", 1000)
    path = tmp_path / "w.pkl"
    data = pickle.dumps(list(range(5000)))
    path.write_bytes(data)
    assert check_format(path) == INCONCLUSIVE
    path.write_bytes(data[:-1])
    assert defect(path) == "its pickle has no end yet"


def test_nothing_in_a_pickle_is_loaded(tmp_path):
    class Trap:
        def __reduce__(self):
            return (tmp_path / "sprung").touch, ()

    (tmp_path / "w.pkl").write_bytes(pickle.dumps(Trap()))
    assert check_format(tmp_path / "w.pkl") == ONE_PICKLE
    assert not (tmp_path / "sprung").exists()
