from faults.ledger import Ledger


def test_a_line_that_is_half_written_is_left_for_the_next_call(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl")
    assert ledger.events() == []
    ledger.path.write_bytes(b'{"event": "begin"}\n{"event": "fin')
    assert ledger.events() == [{"event": "begin"}]
