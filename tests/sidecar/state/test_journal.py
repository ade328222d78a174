import msgspec
import pytest

from podferry.contract.errors import Corrupt, FormatTooNew
from podferry.contract.http_api import Gate
from podferry.contract.status import DurableCheckpoint, RestoredStatus
from podferry.sidecar.runtime.file_identity import FileIdentity
from podferry.sidecar.state.journal import AgentRecord, CheckpointRecord, Journal

OLD_DOCUMENT = b"""{
 "gate": {"open": true, "environment": {"A": "b"}, "summary": "s", "problems": []},
 "handled": {"a": [["a/w.bin", [1, 2, 1700000000123456789]]]},
 "durable": [{"name": "a", "sequence": 1, "step": null, "bytes": 2, "completed_at": 1.0, "durable_at": 2.0}],
 "left_out": {"old": [["old.bin", [3, 4, 5]]]},
 "restored": null, "starts": 3, "writer": "w", "placed": {"7": 1},
 "offered": {"p": {"files": [], "completed_at": 1.0, "changed_at": 2.0, "folder": "p-x", "sent": []}},
 "marks": {"m": [["m.bin", [5, 6, 7]]]},
 "newest_first": true, "drain_until": 9.5, "format": 1}"""
"""What an agent wrote before the record was divided; the names on disk stay."""


def test_a_new_journal_is_empty(tmp_path):
    journal = Journal(tmp_path / "new")
    assert journal.agent == AgentRecord(agent_id=journal.agent.agent_id)
    assert journal.checkpoints == CheckpointRecord()
    assert journal.agent.agent_id not in {"", Journal(tmp_path / "other").agent.agent_id}


def test_a_journal_of_an_earlier_version_is_read_and_written_with_the_same_names(tmp_path):
    (tmp_path / "journal.json").write_bytes(OLD_DOCUMENT)
    journal = Journal(tmp_path)
    assert (journal.agent.starts, journal.agent.agent_id, journal.agent.drain_until) == (3, "w", 9.5)
    assert journal.agent.newest_first
    record = journal.checkpoints
    assert (record.sequences, list(record.ignored), list(record.marks)) == ({7: 1}, ["old"], ["m"])
    assert record.settled == {"a": (("a/w.bin", FileIdentity(1, 2, 1_700_000_000_123_456_789)),)}
    assert record.published["p"].folder == "p-x"
    journal.save()
    written = msgspec.json.decode((tmp_path / "journal.json").read_bytes())
    old = msgspec.json.decode(OLD_DOCUMENT)
    new = {
        "abandoned",
        "began_ns",
        "code_changes",
        "confirming",
        "damaged",
        "dataset_changes",
        "datasets",
        "doubtful",
        "durable_count",
        "fingerprints",
        "leftovers",
        "linked",
        "passed_over",
        "passed_over_count",
        "places",
        "unsettled",
    }
    assert written.keys() - old.keys() == new
    assert all(contains(written[key], old[key]) for key in old if key != "gate")


def contains(written, old):
    """Whether a value has all that an old one has; new fields may have been added to objects."""
    if isinstance(old, dict):
        return all(key in written and contains(written[key], value) for key, value in old.items())
    if isinstance(old, list):
        return len(written) == len(old) and all(map(contains, written, old))
    return written == old


def test_the_next_worker_reads_what_the_last_one_saved(tmp_path):
    journal = Journal(tmp_path)
    journal.agent.starts = 3
    journal.agent.gate = Gate(open=True, environment={"A": "b"})
    journal.checkpoints.settled["a"] = (("a/w.bin", FileIdentity(1, 2, 1_700_000_000_123_456_789)),)
    journal.checkpoints.durable.append(DurableCheckpoint("a", 1, None, 2, 1.0, 2.0))
    journal.checkpoints.restored = RestoredStatus("a", "a", "a-00", 1, None, "run", 2, 0.1)
    journal.save()
    found = Journal(tmp_path)
    assert (found.agent, found.checkpoints) == (journal.agent, journal.checkpoints)
    assert isinstance(found.checkpoints.settled["a"][0][1], FileIdentity)


def test_a_kill_while_it_is_saved_leaves_the_old_one(tmp_path):
    journal = Journal(tmp_path)
    journal.agent.starts = 3
    journal.save()
    (tmp_path / "journal.tmp").write_bytes(b'{"starts": 4')
    assert Journal(tmp_path).agent.starts == 3


@pytest.mark.parametrize(("data", "error"), [(b"{", Corrupt), (b'{"format": 2}', FormatTooNew)])
def test_what_this_agent_did_not_write_is_refused(tmp_path, data, error):
    (tmp_path / "journal.json").write_bytes(data)
    with pytest.raises(error):
        Journal(tmp_path)
