from pathlib import Path

import pytest

from podferry.contract.http_api import Gate
from podferry.sidecar.control.restored_file import write_restored


@pytest.mark.parametrize(
    ("environment", "text"),
    [
        ({"PODFERRY_RESTORED": "/dev/shm/checkpoints/step 7.pt"}, "/dev/shm/checkpoints/step 7.pt\n"),
        ({"PODFERRY_CHECKPOINTS": "/dev/shm/checkpoints"}, ""),
    ],
)
def test_it_has_one_line_or_none(tmp_path: Path, environment: dict[str, str], text: str) -> None:
    path = tmp_path / "path"
    path.write_text("from an earlier start")
    write_restored(Gate(open=True, environment=environment), path)
    assert path.read_text() == text
    assert [one.name for one in tmp_path.iterdir()] == ["path"]
    assert path.stat().st_mode & 0o777 == 0o644
