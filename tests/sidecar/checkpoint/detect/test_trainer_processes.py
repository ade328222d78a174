"""Which processes are the trainer's, and whether one of them is younger than a file."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from podferry.sidecar.checkpoint.detect.trainer_processes import TrainerProcesses

SECOND = 10**9
SETTING = "PODFERRY_TEST_OF_PROCESSES"


@pytest.fixture
def trainer(tmp_path):
    command = [sys.executable, "-c", "print(flush=True); input()"]
    environment = {**os.environ, SETTING: str(tmp_path)}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        process.stdout.readline()  # it has its environment now
        yield process
        process.stdin.close()


def looked(setting, *proc):
    processes = TrainerProcesses(setting, *proc)
    processes.look()
    return processes


def test_a_process_is_known_by_its_environment_and_its_start(tmp_path, trainer):
    processes, now = looked(f"{SETTING}={tmp_path}"), time.time_ns()
    assert processes.all_older_than(now + SECOND)
    assert processes.alive == (trainer.pid,)
    assert not processes.all_older_than(now - 60 * SECOND)


def test_a_process_that_has_ended_lives_no_more_but_was_seen(tmp_path, trainer):
    processes = looked(f"{SETTING}={tmp_path}")
    trainer.kill()
    trainer.wait()
    processes.look()
    assert processes.all_older_than(time.time_ns() + SECOND)
    assert not processes.all_older_than(time.time_ns() - 60 * SECOND)
    assert processes.alive == ()


def test_another_setting_is_not_the_trainers(tmp_path, trainer):
    assert trainer.poll() is None
    assert not looked(f"{SETTING}={tmp_path}/other").all_older_than(time.time_ns() + SECOND)


def test_without_proc_nothing_is_known(tmp_path):
    assert not looked("A=1", tmp_path / "none").all_older_than(time.time_ns() + SECOND)
