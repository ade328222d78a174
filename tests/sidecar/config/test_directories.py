from __future__ import annotations

from pathlib import Path

from podferry.sidecar.config.directories import Directories


def test_an_ownership_record_is_below_the_control_directory_by_default():
    made = Directories(Path("/control"), ownership={"own": Path("/records")})
    assert made.ownership_of("") == Path("/control")
    assert made.ownership_of("test") == Path("/control/claims/test")
    assert made.ownership_of("own") == Path("/records")


def test_a_checkpoint_directory_is_temporary_if_it_was_made_for_the_agent():
    named, made = Path("/user/c"), Path("/dev/shm/x/c")
    for checkpoints, temporary in ((named, False), (made, True), (None, False)):
        found = Directories(Path("/control"), checkpoints=checkpoints, temporary=(Path("/dev/shm/x"),))
        assert found.has_temporary_checkpoints is temporary
