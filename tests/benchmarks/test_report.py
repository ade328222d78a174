from pathlib import Path

import pytest
import report


def test_the_document_holds_what_the_table_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    path = report.report("name", {"cores": "2"}, [], more={"epochs": [{"way": "podferry", "waits": "3%"}]})
    assert '"waits": "3%"' in path.read_text()
