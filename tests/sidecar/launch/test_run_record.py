import pytest

from podferry.contract.errors import Corrupt, FormatTooNew
from podferry.sidecar.launch.run_record import RunRecord, read_record, write_record


def test_a_record_is_read_as_it_was_written(tmp_path):
    record = RunRecord(("python", "t.py"), "{}", 1.5, "/dev/shm/x", checkpoints="/c", temporary=("/t",))
    write_record(tmp_path / "record.json", record)
    assert read_record(tmp_path / "record.json") == record


@pytest.mark.parametrize(("text", "error"), [("{", Corrupt), ('{"format": 9}', FormatTooNew)])
def test_other_contents_are_named(tmp_path, text, error):
    (tmp_path / "record.json").write_text(text)
    with pytest.raises(error, match=r"record\.json"):
        read_record(tmp_path / "record.json")
