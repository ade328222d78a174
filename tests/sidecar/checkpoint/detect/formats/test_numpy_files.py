import io
import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podferry.sidecar.checkpoint.detect.format_checks import check_format
from podferry.sidecar.checkpoint.detect.formats.file_holes import HOLES
from podferry.sidecar.checkpoint.detect.formats.verdict import INCONCLUSIVE
from tests.support.format_samples import cut, interrupted_saves, passed

ARRAYS = {
    "weights": np.arange(3000.0).reshape(3, 1000),
    "none": np.zeros((0, 4), "i2"),
    "number": np.array(7),
    "objects": np.array([1, "two", None], dtype=object),
}
KINDS = ["f2", ">f8", "c16", "?", "S5", "U3", "V6", "M8[s]", "m8[D]", "u1"]
reusing = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)


def saved(array, version=None) -> bytes:
    data = io.BytesIO()
    with warnings.catch_warnings(action="ignore"):  # versions above 1 are for newer readers only
        np.lib.format.write_array(data, np.asarray(array), version)
    return data.getvalue()


@reusing
@given(
    st.sampled_from(
        [*KINDS, "O", [("a", "f4"), ("b", "i2", (2, 3))], [("ä", "U2"), ("o", "O")], ("f4", (2,))]
    ),
    st.lists(st.integers(0, 4), max_size=3),
    st.sampled_from([(1, 0), (2, 0), (3, 0)]),
    st.data(),
)
def test_an_array_is_certainly_incomplete_when_it_is_cut_short(tmp_path, kind, shape, version, chance):
    try:
        data = saved(np.zeros(shape, kind), version)
    except UnicodeEncodeError:
        return  # names beyond Latin-1 need version 3
    path = tmp_path / "w.npy"
    path.write_bytes(data)
    assert check_format(path) == INCONCLUSIVE  # it may be filled through a mapping
    lengths = chance.draw(st.sets(st.integers(0, len(data) - 1), max_size=20)) | {len(data) - 1}
    assert passed(cut(path, data, lengths)) == []


@pytest.mark.parametrize("order", ["C", "F"])
def test_every_truncation_of_an_array_is_a_defect(tmp_path, order):
    assert passed(cut(tmp_path / "w.npy", saved(np.ones((5, 7), order=order)))) == []


def test_several_arrays_in_a_file_may_lack_the_last(tmp_path):
    one, two = saved(np.arange(9)), saved(np.arange(4.0))
    path = tmp_path / "w.npy"
    path.write_bytes(one + two)
    assert check_format(path) == (None, False, (("arrays", 2), (HOLES, 0)))
    assert passed(cut(path, one + two, range(len(one) + 1, len(one + two)))) == []


@pytest.mark.parametrize(
    "data",
    [
        b"another kind of file",
        saved(np.arange(9)) + b"and more of another kind",
        b"\x93NUMPY\x01\x00\x10\x00{'descr': '<q9'}",
        b"\x93NUMPY\x01\x00\x06\x00{{{{{{",
        b"\x93NUMPY\x02\x00\xff\xff\xff\x7f" + bytes(50),
        saved(np.arange(9)).replace(b"'<i8'", b"'<q8'"),
        saved(np.arange(9)).replace(b"(9,)", b"'9'}"),
    ],
)
def test_other_content_is_inconclusive(tmp_path, data):
    (tmp_path / "w.npy").write_bytes(data)
    assert check_format(tmp_path / "w.npy") == INCONCLUSIVE


def test_a_mapped_array_with_parts_never_written_is_not_certain(tmp_path):
    path = tmp_path / "w.npy"
    array = np.lib.format.open_memmap(path, "w+", "f8", (1 << 20,))
    array[:10] = 1
    array.flush()
    found = check_format(path)
    assert (found.defect, found.conclusive) == (None, False)
    assert dict(found.members)[HOLES] > 7 << 20


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_archive_shows_its_arrays_but_not_which_are_missing(tmp_path, save):
    path = tmp_path / "w.npz"
    save(path, **ARRAYS)
    found = check_format(path)
    assert (found.defect, found.conclusive) == (None, False)
    assert dict(found.members) == {f"{name}.npy": 0 for name in ARRAYS}


@pytest.mark.parametrize("share", [0.0, 0.5])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_interrupted_save_is_never_certain_and_lacks_whole_arrays_only(tmp_path, save, share):
    path = tmp_path / "w.npz"
    whole = {(f"{name}.npy", 0) for name in ARRAYS}
    verdicts = [check_format(path) for _ in interrupted_saves(path, lambda file: save(file, **ARRAYS), share)]
    well_formed = [verdict for verdict in verdicts if verdict.defect is None]
    assert len(verdicts) > 10
    assert well_formed
    assert not any(verdict.conclusive or set(verdict.members) >= whole for verdict in well_formed)
    assert all(set(verdict.members) < whole for verdict in well_formed)


@pytest.mark.parametrize("name", ["weights", "objects"])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_array_cut_short_within_an_archive_is_a_defect(tmp_path, method, name):
    path = tmp_path / "w.npz"
    data = saved(ARRAYS[name])
    for length in [*range(0, len(data), len(data) // 40), len(data) - 1]:
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr(f"{name}.npy", data[:length])
        assert check_format(path).defect.startswith(f"{name}.npy")


@pytest.mark.parametrize("name", ["w.npy", "w.npz"])
def test_an_empty_file_has_just_begun(tmp_path, name):
    (tmp_path / name).touch()
    assert check_format(tmp_path / name).defect == "it is empty"
