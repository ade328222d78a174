"""Ctrl-C, signals and closed terminals, in each phase of `podferry run`."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from podferry.cli.run.signals import BOUNCE_SECONDS
from tests.support.patience import PATIENCE
from tests.support.run_command import newest, wait_for
from tests.support.terminal import Terminal

CTRL_C = "\x03"
PODFERRY = [sys.executable, "-m", "podferry.cli.main", "run"]
SAVE = "import os, pathlib; f = pathlib.Path(os.environ['PODFERRY_CHECKPOINTS'], 'epoch-1.bin')\n"


@pytest.fixture
def silent() -> Iterator[str]:
    """The URL of a server that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/data/"


@pytest.fixture
def training(tmp_path: Path) -> Callable[..., list[str]]:
    """The command of a run with a trainer's code, and more options."""

    def command(code: str, *options: str) -> list[str]:
        places = ["--checkpoints", str(tmp_path / "destination"), "--lineage", "t"]
        return [*PODFERRY, *places, *options, "--", sys.executable, "-c", code]

    return command


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_during_the_prefetch(silent: str, times: int) -> None:
    with Terminal([*PODFERRY, "--dataset", silent, "--", "true"]) as terminal:
        terminal.read_until("planning")
        for _ in range(times):
            terminal.press(CTRL_C)
        assert terminal.wait() == 130
    assert "podferry: stopped by SIGINT before training started" in terminal.text
    assert "Traceback" not in terminal.text


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_other_signals_during_the_prefetch(silent: str, number: signal.Signals, code: int) -> None:
    with Terminal([*PODFERRY, "--dataset", silent, "--", "true"]) as terminal:
        terminal.read_until("planning")
        terminal.process.send_signal(number)
        assert terminal.wait() == code


def test_ctrl_c_reaches_the_trainer_once(training: Callable[..., list[str]], tmp_path: Path) -> None:
    count = (
        "import signal, time; caught = []\n"
        "signal.signal(signal.SIGINT, lambda *_: caught.append(1))\n"
        "print('ready', flush=True)\n"
        "while not caught: time.sleep(0.01)\n"
        "time.sleep(0.3)\n"
        "print('caught', len(caught)); f.write_bytes(b'1'); raise SystemExit(5)\n"
    )
    with Terminal(training(SAVE + count)) as terminal:
        terminal.read_until("ready")
        terminal.press(CTRL_C)
        assert terminal.wait() == 5
    assert "caught 1" in terminal.text
    assert newest(tmp_path)["name"] == "epoch-1"


def test_a_trainer_that_ignores_ctrl_c_is_terminated_then_killed(
    training: Callable[..., list[str]], tmp_path: Path
) -> None:
    ignore = (
        "import signal\n"
        "for number in (signal.SIGINT, signal.SIGTERM): signal.signal(number, signal.SIG_IGN)\n"
        "f.write_bytes(b'1'); print('ready', flush=True)\n"
        "while True: signal.pause()\n"
    )
    with Terminal(training(SAVE + ignore)) as terminal:
        terminal.read_until("ready")
        for answer in ("Ctrl-C again sends SIGTERM", "Ctrl-C again kills it", "SIGKILL to process"):
            terminal.press(CTRL_C)
            terminal.read_until(answer)
            time.sleep(BOUNCE_SECONDS)
        assert terminal.wait() == 137
    assert newest(tmp_path)["name"] == "epoch-1"


def test_a_signal_to_the_command_alone_reaches_the_trainer(training: Callable[..., list[str]]) -> None:
    wait = "import time; print('ready', flush=True)\nwhile True: time.sleep(0.05)"
    with subprocess.Popen(
        training(wait), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=PATIENCE)[1].decode()
    assert process.returncode == 130
    assert "KeyboardInterrupt" in said


def test_a_closed_terminal_ends_the_trainer_and_loses_nothing(
    training: Callable[..., list[str]], tmp_path: Path
) -> None:
    save = (
        "import signal, time\n"
        "t = f.with_name('saving.tmp')\n"
        "def end(*_): t.write_bytes(b'1'); t.rename(f); raise SystemExit(0)\n"
        f"signal.signal(signal.SIGHUP, end); pathlib.Path({str(tmp_path / 'ready')!r}).touch()\n"
        "while True: time.sleep(0.05)\n"
    )
    with Terminal(training(SAVE + save)) as terminal:
        wait_for((tmp_path / "ready").exists)
        terminal.close()
        assert terminal.process.wait(PATIENCE) == 0
    assert newest(tmp_path)["name"] == "epoch-1"


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_ends_the_wait_at_the_end(
    training: Callable[..., list[str]], tmp_path: Path, times: int
) -> None:
    save = "for one in (f, f.with_suffix('.opt')): one.write_bytes(os.urandom(800_000))"
    slow = training(SAVE + save, "--upload-limit", "100Ki")  # the second file waits for 8 s
    with Terminal(slow) as terminal:
        terminal.read_until("Ctrl-C ends this wait")
        for _ in range(times):
            terminal.press(CTRL_C)
            time.sleep(BOUNCE_SECONDS)
        assert terminal.wait() == 74
    for text in ("not durable: epoch-1", "the agent continues for up to 30 s", "podferry leftovers ls"):
        assert text in terminal.text
    for text in ("Traceback", "has not been scanned", "podferry.io", "after 0 s"):
        assert text not in terminal.text
    wait_for((tmp_path / "destination/t/.podferry/latest.json").exists)


def test_what_was_ignored_at_the_start_stays_ignored(
    training: Callable[..., list[str]], tmp_path: Path
) -> None:
    """As under nohup."""
    wait = (
        "import signal, time; print('ready', flush=True)\n"
        f"while not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.01)\n"
        "f.write_bytes(b'1')\n"
    )
    command = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *training(SAVE + wait)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGHUP)
        (tmp_path / "go").touch()
        assert process.wait(PATIENCE) == 0
    assert newest(tmp_path)["name"] == "epoch-1"


def test_signals_reach_the_trainer(command: list[str], tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    waiting = (
        "import os, pathlib, signal, sys, time\n"
        "def end(*_):\n"
        "    pathlib.Path(os.environ['PODFERRY_CHECKPOINTS'], 'last.bin').write_bytes(b'at the end')\n"
        "    sys.exit(3)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        f"pathlib.Path({str(ready)!r}).touch()\n"
        "while True: time.sleep(0.05)\n"
    )
    with subprocess.Popen([*command[:-1], "-c", waiting], stderr=subprocess.DEVNULL) as process:
        wait_for(ready.exists)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 3
    assert newest(tmp_path)["name"] == "last"


def test_a_signal_ends_the_wait_at_the_end(command: list[str], tmp_path: Path) -> None:
    """The destination disappears while training runs: reports at once what is not durable."""
    ready = tmp_path / "ready"
    spoiling = (
        "import os, pathlib, shutil, signal\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"  # the signals are for the wait at the end
        f"shutil.rmtree({str(tmp_path / 'destination')!r})\n"
        f"pathlib.Path({str(tmp_path / 'destination')!r}).write_text('a file')\n"
        "pathlib.Path(os.environ['PODFERRY_CHECKPOINTS'], 'epoch-1.npz.part').write_bytes(b'x')\n"
        "pathlib.Path(os.environ['PODFERRY_CHECKPOINTS'], 'epoch-1.bin').write_bytes(b'x')\n"
        f"pathlib.Path({str(ready)!r}).touch()\n"
    )
    with subprocess.Popen([*command[:-1], "-c", spoiling], stderr=subprocess.PIPE, text=True) as process:
        wait_for(ready.exists)
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        assert process.stderr is not None
        said = process.stderr.read()
    assert process.returncode == 74
    assert "not durable: epoch-1" in said


HALF = """
import signal, sys, time
d = f.with_name('step-1')
d.mkdir()
(d / 'model.bin').write_bytes(b'1' * 9000)
"""


def test_exit_code_0_after_a_signal_proves_no_save(
    training: Callable[..., list[str]], tmp_path: Path
) -> None:
    """The handler ends the trainer between two files."""
    wait = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); print('ready', flush=True); signal.pause()"
    with subprocess.Popen(
        training(SAVE + HALF + wait), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 76
    assert newest(tmp_path)["doubts"]


def test_a_saver_that_is_left_behind_is_waited_for(
    training: Callable[..., list[str]], tmp_path: Path
) -> None:
    save = SAVE + HALF + "time.sleep(3); (d / 'optimizer.bin').write_bytes(b'1' * 9000)"
    code = (
        "import subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-c', sys.argv[1]], start_new_session=True)\n"
    )
    done = subprocess.run(
        [*training(code), save], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "waiting up to 30 s for process" in done.stderr
    assert [file["name"] for file in newest(tmp_path)["files"]] == [
        "step-1/model.bin",
        "step-1/optimizer.bin",
    ]
