import pytest

from podferry.contract.api import Gate
from podferry.contract.errors import Corrupt, FormatTooNew
from podferry.contract.status import DurableCheckpoint, RestoredStatus
from podferry.sidecar.runtime.file_identity import FileIdentity
from podferry.sidecar.state.journal import Journal, JournalRecord


def test_a_new_journal_is_empty(tmp_path):
    record = Journal(tmp_path / "new").record
    assert record == JournalRecord(writer=record.writer)
    assert record.writer not in {"", Journal(tmp_path / "other").record.writer}


def test_the_next_worker_reads_what_the_last_one_saved(tmp_path):
    journal = Journal(tmp_path)
    journal.record.starts = 3
    journal.record.gate = Gate(open=True, environment={"A": "b"})
    journal.record.handled["a"] = (("a/w.bin", FileIdentity(1, 2, 1_700_000_000_123_456_789)),)
    journal.record.durable.append(DurableCheckpoint("a", 1, None, 2, 1.0, 2.0))
    journal.record.restored = RestoredStatus("a", "a", "a-00", 1, None, "run", 2, 0.1)
    journal.save()
    found = Journal(tmp_path).record
    assert found == journal.record
    assert isinstance(found.handled["a"][0][1], FileIdentity)


def test_a_kill_while_it_is_saved_leaves_the_old_one(tmp_path):
    journal = Journal(tmp_path)
    journal.record.starts = 3
    journal.save()
    (tmp_path / "journal.tmp").write_bytes(b'{"starts": 4')
    assert Journal(tmp_path).record.starts == 3


@pytest.mark.parametrize(("data", "error"), [(b"{", Corrupt), (b'{"format": 2}', FormatTooNew)])
def test_what_this_agent_did_not_write_is_refused(tmp_path, data, error):
    (tmp_path / "journal.json").write_bytes(data)
    with pytest.raises(error):
        Journal(tmp_path)
