from pathlib import Path

import pytest
from latencies import main, measured


def test_the_percentiles_of_a_pass_are_ordered(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / str(number)).write_bytes(bytes(number))
    found = measured([str(path) for path in tmp_path.iterdir()])
    assert 0 < found["p50"] <= found["p99"]


def test_fewer_files_than_wanted_are_all_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(3):
        (tmp_path / str(number)).touch()
    main(str(tmp_path), "500")
    assert '"again": {"p50": ' in capsys.readouterr().out
