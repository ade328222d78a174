import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from podferry.contract.status import DurableCheckpoint
from podferry.sidecar.checkpoint.detect.detector import scan_checkpoints
from podferry.sidecar.checkpoint.pipeline.volume_pressure import VolumePressure
from podferry.sidecar.config.tuning import CheckpointSettings


def commits(*names: str) -> list[DurableCheckpoint]:
    return [DurableCheckpoint(name, number, None, SIZE, 1.0, 2.0) for number, name in enumerate(names)]


SIZE = 5000
SETTINGS = CheckpointSettings(eviction_threshold=0.8, full_threshold=0.99)


class Volume:
    """A directory of checkpoints on a simulated volume."""

    def __init__(self, root: Path, total: int) -> None:
        self.root, self.total = root, total
        self.looks = SimpleNamespace(root=root, present={}, links={})

    def save(self, *names: str) -> None:
        for name in names:
            (self.root / name).write_bytes(b"c" * SIZE)
        self.looks.present = scan_checkpoints(self.root)[1]

    def usage(self, _: Path) -> SimpleNamespace:
        used = sum(path.stat().st_size for path in self.root.rglob("*") if path.is_file())
        return SimpleNamespace(used=used, free=self.total - used, total=self.total)

    def names(self) -> list[str]:
        return sorted(path.name for path in self.root.iterdir())


@pytest.fixture
def volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Volume:
    found = Volume(tmp_path, 5 * SIZE)
    monkeypatch.setattr(shutil, "disk_usage", found.usage)
    return found


def test_without_pressure_nothing_is_evicted(volume: Volume) -> None:
    volume.save("1.pt", "2.pt")
    assert (
        VolumePressure(volume.looks, SETTINGS, 1).evict_if_needed(volume.looks.present, commits("1", "2"))
        is None
    )
    assert volume.names() == ["1.pt", "2.pt"]


def test_durable_ones_go_before_the_next_does_not_fit(volume: Volume) -> None:
    volume.save("1.pt", "2.pt", "3.pt", "4.pt")
    volume.total = 4 * SIZE + 1
    assert (
        VolumePressure(volume.looks, SETTINGS, 1).evict_if_needed(
            volume.looks.present, commits("1", "2", "3", "4")
        )
        is None
    )
    assert volume.names() == ["2.pt", "3.pt", "4.pt"], "the oldest, and no more than needed"


def test_neither_a_link_nor_what_it_leads_to_is_evicted(volume: Volume) -> None:
    volume.save("1.pt", "2.pt", "3.pt", "4.pt")
    volume.total, volume.looks.links = 4 * SIZE + 1, {"2.pt": "1.pt"}
    done = commits("1", "2", "3", "4")
    VolumePressure(volume.looks, SETTINGS, 1).evict_if_needed(volume.looks.present, done)
    assert volume.names() == ["1.pt", "2.pt", "4.pt"]


@pytest.mark.parametrize(
    ("total", "what"),
    [(4 * SIZE + SIZE // 2, "the next checkpoint may not fit"), (4 * SIZE, "the checkpoint volume is full")],
)
def test_what_is_not_durable_stays_and_is_reported_once(volume: Volume, total: int, what: str) -> None:
    volume.save("1.pt", "2.pt", "3.pt", "4.pt")
    volume.total = total
    room = VolumePressure(volume.looks, SETTINGS, 1)
    with capture_logs() as logs:
        problems = [room.evict_if_needed({}, []), room.evict_if_needed({}, [])]
    assert all(problem is not None and what in problem.what for problem in problems)
    assert len(logs) == 1
    assert volume.names() == ["1.pt", "2.pt", "3.pt", "4.pt"]


def test_a_directory_that_the_trainer_has_removed_is_no_problem(tmp_path: Path) -> None:
    looks = SimpleNamespace(root=tmp_path / "removed", present={}, links={}, not_ready={})
    room = VolumePressure(looks, SETTINGS, 1)
    assert room.evict_if_needed({}, commits("1")) is None
    assert room.evict_given_up([]) is None
