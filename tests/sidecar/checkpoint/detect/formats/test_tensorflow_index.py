from podferry.sidecar.checkpoint.detect.format_checks import check_format
from podferry.sidecar.checkpoint.detect.formats.tensorflow_index import TABLE_END
from podferry.sidecar.checkpoint.detect.formats.verdict import COMPLETE, INCONCLUSIVE


def test_an_index_next_to_its_shards_ends_with_its_marker(tmp_path):
    path = tmp_path / "c[1].index"
    (tmp_path / "c[1].data-00000-of-00001").touch()
    for data in (b"", b"12", b"the table" + TABLE_END[:-1]):
        path.write_bytes(data)
        assert check_format(path).defect == "its table has no end marker yet"
    path.write_bytes(b"the table" + TABLE_END)
    assert check_format(path) == COMPLETE


def test_an_index_of_another_kind_is_inconclusive(tmp_path):
    (tmp_path / "w.index").write_bytes(b"an index of another kind")
    assert check_format(tmp_path / "w.index") == INCONCLUSIVE
