"""Who lives, by the locks in the run's directory."""

import pytest

from podferry.sidecar.config.run_directory import RunDirectory
from podferry.sidecar.runtime.file_lock import acquire, release


@pytest.fixture
def run(tmp_path):
    return RunDirectory(tmp_path)


def test_a_run_is_over_when_command_and_trainer_have_ended(run):
    command, trainer = acquire(run.path), acquire(run.trainer_lock)
    assert (run.is_over(), run.command_lives(), run.in_use()) == (False, True, True)
    release(command)
    assert (run.is_over(), run.command_lives(), run.in_use()) == (False, False, True)
    release(trainer)
    assert (run.is_over(), run.command_lives(), run.in_use()) == (True, False, False)


def test_the_command_may_say_that_it_is_over(run):
    trainer = acquire(run.trainer_lock)
    run.mark_ended()
    assert run.is_over()
    assert run.in_use()
    release(trainer)


def test_an_agent_that_drains_is_in_use(run):
    agent = acquire(run.agent_lock)
    assert (run.is_over(), run.in_use()) == (True, True)
    release(agent)


def test_a_removed_run_is_over(tmp_path):
    gone = RunDirectory(tmp_path / "gone")
    gone.mark_ended()
    assert (gone.is_over(), gone.in_use()) == (True, False)
