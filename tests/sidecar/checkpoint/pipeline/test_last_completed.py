from types import SimpleNamespace

from podferry.sidecar.checkpoint.pipeline.last_completed import last_completed
from podferry.sidecar.state.journal import CheckpointRecord


def test_the_last_of_what_was_held_durable_or_published():
    at = [SimpleNamespace(completed_at=seconds) for seconds in (3.0, 7.0, 5.0)]
    assert last_completed(CheckpointRecord(), []) == 0.0
    assert last_completed(CheckpointRecord(), at[:1]) == 3.0
    record = CheckpointRecord()
    record.durable, record.published = [at[1]], {"a": at[2]}
    assert last_completed(record, at[:1]) == 7.0
