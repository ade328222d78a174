"""What is not uploaded is named: in status and log, and at the end if data is lost with it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from podferry.contract.status import CheckpointStatus
from podferry.sidecar.checkpoint.detect.directory_scan import LeftOut
from podferry.sidecar.checkpoint.pipeline.left_out_names import LeftOutNames
from podferry.sidecar.checkpoint.pipeline.version_registry import VersionRegistry
from podferry.sidecar.runtime.file_identity import FileIdentity
from podferry.sidecar.state.durations import Durations
from podferry.sidecar.state.journal import Journal


def left(name: str, number: int = 1, *, loses: bool = True) -> dict[str, LeftOut]:
    return {name: LeftOut("a reason", loses, ((name, FileIdentity(number, 1, 1)),))}


class Site:
    def __init__(self, control: Path) -> None:
        self.control = control
        self.status = CheckpointStatus("memory://b", "/seen", "run")
        self.detector = SimpleNamespace(left_out={})
        self.names = self.restarted()

    def restarted(self) -> LeftOutNames:
        registry = VersionRegistry(Journal(self.control), self.status, [], Durations(), lambda: None)
        return LeftOutNames(self.detector, registry, self.status)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_the_status_names_the_first_and_counts_all(site: Site) -> None:
    for number in range(70):
        site.detector.left_out |= left(f"{number:02}.tmp")
    site.names.report()
    assert (len(site.status.ignored_names), site.status.ignored_count) == (50, 70)
    assert site.status.ignored_names["00.tmp"] == "a reason"


def test_a_name_is_logged_once_it_stays_and_once_only(site: Site) -> None:
    with capture_logs() as logs:
        for number in (1, 2, 2, 2):
            site.detector.left_out = left("last.tmp", number) | left("link", loses=False)
            site.names.report()
            site.names.report()
    assert [(line["name"], line["log_level"]) for line in logs] == [("link", "info"), ("last.tmp", "warning")]


def test_what_was_there_before_training_is_not_lost_until_it_changes(site: Site) -> None:
    site.detector.left_out = left("old.tmp") | left("pipe", loses=False)
    site.names.ignore(site.detector.left_out)
    for names in (site.names, site.restarted()):
        assert names.lost() == {}
    site.detector.left_out = left("old.tmp", 2) | left("new.tmp") | left("pipe", loses=False)
    assert list(site.restarted().lost()) == ["new.tmp", "old.tmp"]
