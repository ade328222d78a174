import msgspec

from podferry.contract.status import AgentPhase, DatasetStatus, Status, Transfer


def test_the_phase_is_called_stage_in_json() -> None:
    """Older gates and people's scripts read that field."""
    document = msgspec.json.decode(msgspec.json.encode(Status(phase=AgentPhase.PREFETCHING)))
    assert document["stage"] == "prefetching"
    assert "phase" not in document


def test_a_status_of_another_version_is_read() -> None:
    """Fields that it lacks have their defaults, and further ones are ignored."""
    data = b'{"stage": "open", "datasets": [{"uri": "s3://b/d", "path": "/d", "later": 1}], "later": {}}'
    found = msgspec.json.decode(data, type=Status)
    assert found == Status(phase=AgentPhase.OPEN, datasets=[DatasetStatus("s3://b/d", "/d")])


def test_each_dataset_has_its_own_counters() -> None:
    one, other = (DatasetStatus("s3://b/d", "/d") for _ in range(2))
    one.transfer.bytes = 7
    one.transfer.first_bytes.append(1)
    assert other.transfer == Transfer()
