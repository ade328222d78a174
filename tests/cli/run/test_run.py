"""`podferry run` as people use it: real processes, local stores."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from podferry.cli.run.run import _conclude, _wait
from podferry.cli.run.signals import Interrupted
from podferry.contract.errors import Problem
from podferry.contract.http_api import Durability
from podferry.contract.status import DurableCheckpoint
from tests.support.patience import PATIENCE
from tests.support.run_command import TRAIN, newest, run, wait_for


def test_data_is_staged_and_the_checkpoint_durable_on_return(command: list[str], tmp_path: Path) -> None:
    done = run([*command, "1"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["files ['a', 'b']", "restored nothing", "file []", "lineage t"]
    assert newest(tmp_path)["name"] == "step-1"
    assert "last durable checkpoint: step-1" in done.stderr


def test_the_next_run_resumes(command: list[str], tmp_path: Path) -> None:
    run([*command, "1"])
    done = run([*command, "2"])
    assert done.stdout.splitlines()[1:3] == ["restored step-1.bin", r"file ['step-1.bin\n']"]
    assert "set restore to never" in done.stderr
    assert newest(tmp_path)["sequence"] == 2


def test_an_edited_script_resumes_and_is_named(command: list[str], tmp_path: Path) -> None:
    run([*command, "1"])
    assert "CODE HAS CHANGED" not in run([*command, "1"]).stderr
    (tmp_path / "train.py").write_text(f"{TRAIN}\n# edited")
    said = run([*command, "1"]).stderr
    assert re.search(r"TRAINING CODE HAS CHANGED SINCE: code \w{12} before, \w{12} now; set restore to", said)


def test_the_exit_code_is_passed_on_and_what_was_written_is_durable(
    command: list[str], tmp_path: Path
) -> None:
    done = run([*command[:-1], "-c", TRAIN + "sys.exit(7)", "1"])
    assert done.returncode == 7, done.stderr
    assert newest(tmp_path)["name"] == "step-1"


def test_a_torn_checkpoint_at_the_end_fails_a_run_that_succeeded(command: list[str], tmp_path: Path) -> None:
    torn = (
        "import os; open(os.environ['PODFERRY_CHECKPOINTS'] + '/epoch-1.npz', 'wb').write(b'PK\\3\\4 torn')"
    )
    done = run([*command[:-1], "-c", torn])
    assert done.returncode == 74, done.stderr
    assert "epoch-1 is not complete" in done.stderr
    assert "zip directory is not written" in done.stderr
    assert not (tmp_path / "destination/t/.podferry/commits").exists()


def test_a_killed_run_leaves_its_checkpoint_durable_and_nothing_behind(
    command: list[str], tmp_path: Path
) -> None:
    """SIGKILL of `podferry run`: its agent outlives it, drains, and cleans up."""
    ready = tmp_path / "ready"
    writing = (
        "import os, pathlib, signal\n"
        "pathlib.Path(os.environ['PODFERRY_CHECKPOINTS'], 'epoch-4.bin').write_bytes(b'four')\n"
        f"pathlib.Path({str(ready)!r}).write_text(os.environ['PODFERRY_DATASET'])\n"
        "os.kill(os.getppid(), signal.SIGKILL)\n"
    )
    with subprocess.Popen([*command[:-1], "-c", writing], stderr=subprocess.DEVNULL) as process:
        assert process.wait(PATIENCE) == -signal.SIGKILL
    wait_for((tmp_path / "destination/t/.podferry/latest.json").exists)
    assert newest(tmp_path)["name"] == "epoch-4"
    wait_for(lambda: not Path(ready.read_text()).exists())


def test_all_errors_are_reported_at_once(tmp_path: Path) -> None:
    options = ["--dataset", "s3:/x", "--checkpoint-path", "/tmp/x", "--keep-local", "-1"]
    done = run([sys.executable, "-m", "podferry.cli.main", "run", *options, "--", "true"])
    assert done.returncode == 78
    assert "Traceback" not in done.stderr
    for option in ("--checkpoint-path", "--keep-local"):
        assert option in done.stderr


def test_an_empty_dataset_ends_with_the_nearest_and_the_codes_of_the_gate(
    command: list[str], remote: Path
) -> None:
    wrong = [str(remote) + "x" if word == str(remote) else word for word in command]
    done = run([*wrong, "1"])
    assert done.returncode == 78
    assert "Did you mean file://" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("slip", "meant"), [("--datset", "--dataset"), ("--chekpoints=./x", "--checkpoints"), ("-x", "--")]
)
def test_a_misspelled_option_is_not_a_command(command: list[str], slip: str, meant: str) -> None:
    at = command.index("--")
    done = run([*command[:at], slip, "value", *command[at:], "1"])
    assert done.returncode == 2
    assert f"no such option {slip!r}" in done.stderr
    assert meant in done.stderr


def test_an_unset_variable_is_no_dataset(tmp_path: Path) -> None:
    done = run(
        [sys.executable, "-m", "podferry.cli.main", "run", "--dataset", "", "--", "true"], cwd=tmp_path
    )
    assert done.returncode == 78
    assert "--dataset is empty" in done.stderr


def test_a_directory_that_cannot_be_made_is_named(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    at = command.index("--")
    for path, why in ((tmp_path / "file", "File exists"), (tmp_path / "no" / "such", "mkdir -p")):
        done = run([*command[:at], "--checkpoint-path", str(path), *command[at:], "1"])
        assert done.returncode == 78
        assert f"the directory {path} cannot be created" in done.stderr
        assert why in done.stderr


KILL_THE_AGENT = """
import os, pathlib, signal, sys, time
checkpoints = pathlib.Path(os.environ["PODFERRY_CHECKPOINTS"])
(checkpoints / "epoch-1.bin").write_bytes(b"1")
def children(pid):
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
(supervisor,) = [pid for pid in children(os.getppid()) if int(pid) != os.getpid()]
(worker,) = children(supervisor)
for victim in {"supervisor": [supervisor], "both": [supervisor, worker]}[sys.argv[1]]:
    os.kill(int(victim), signal.SIGKILL)
while pathlib.Path(f"/proc/{worker}/cmdline").exists():
    time.sleep(0.01)
data = pathlib.Path(os.environ["PODFERRY_DATASET"])
print("files", sorted(path.name for path in data.iterdir()))
(checkpoints / "epoch-2.bin").write_bytes(b"2")
"""


@pytest.mark.parametrize("victim", ["supervisor", "both"])
def test_a_killed_agent_is_replaced_under_the_living_trainer(
    command: list[str], tmp_path: Path, victim: str
) -> None:
    done = run([*command[:-1], "-c", KILL_THE_AGENT, victim])
    assert done.returncode == 0, done.stderr
    assert done.stdout == "files ['a', 'b']\n"
    assert "the agent was killed by SIGKILL; starting another one, which continues" in done.stderr
    assert newest(tmp_path)["name"] == "epoch-2"


def test_in_json_every_line_is_json(command: list[str]) -> None:
    at = command.index("--")
    done = run([*command[:at], "--log-format", "json", *command[at:-1], "-c", KILL_THE_AGENT, "both"])
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    (killed,) = [line for line in lines if "was killed by SIGKILL" in line["event"]]
    assert killed["level"] == "warning"


def test_without_a_wait_what_is_durable_at_once_is_seen(command: list[str], tmp_path: Path) -> None:
    at = command.index("--")
    committed = tmp_path / "destination/t/.podferry/latest.json"
    waiting = f"import time\nwhile not pathlib.Path({str(committed)!r}).exists(): time.sleep(0.01)\n"
    program = ["-c", TRAIN + waiting, "1"]
    done = run([*command[:at], "--durable-timeout", "0", *command[at:-1], *program])
    assert done.returncode == 0, done.stderr
    assert newest(tmp_path)["name"] == "step-1"


def test_a_named_stage_is_kept_and_used_again(command: list[str], tmp_path: Path) -> None:
    at = command.index("--")
    named = [*command[:at], "--dataset-path", str(tmp_path / "stage"), *command[at:], "1"]
    assert run(named).returncode == 0
    inode = (tmp_path / "stage" / "a").stat().st_ino
    again = run(named)
    assert "2 of them kept" in again.stderr
    assert (tmp_path / "stage" / "a").stat().st_ino == inode


def test_several_datasets_each_with_its_own_options(tmp_path: Path, remote: Path) -> None:
    look = (
        "import os\n"
        "names = sorted(name for name in os.environ if name.startswith('PODFERRY_DATASET'))\n"
        "print({name: sorted(os.listdir(os.environ[name])) for name in names})"
    )
    options = [
        "--dataset",
        str(remote),
        "--dataset",
        f"val={remote}",
        "--dataset-path",
        f"val={tmp_path / 'val'}",
    ]
    options += ["--include", "val=a", "--exclude", "a", "--file-mode", "val=0400"]
    done = run([sys.executable, "-m", "podferry.cli.main", "run", *options, "--", sys.executable, "-c", look])
    assert done.returncode == 0, done.stderr
    assert done.stdout == "{'PODFERRY_DATASET': ['b'], 'PODFERRY_DATASET_VAL': ['a']}\n"
    assert "dataset val: 1 file" in done.stderr
    assert (tmp_path / "val" / "a").stat().st_mode & 0o777 == 0o400
    assert (tmp_path / "val.podferry").is_dir()


def test_two_unnamed_datasets_are_refused(remote: Path) -> None:
    options = ["--dataset", str(remote), "--dataset", str(remote)]
    done = run([sys.executable, "-m", "podferry.cli.main", "run", *options, "--", "true"])
    assert done.returncode == 78
    assert "--dataset is given twice for one dataset" in done.stderr


def test_polling_is_a_full_mode(command: list[str], tmp_path: Path) -> None:
    at = command.index("--")
    assert run([*command[:at], "--polling", *command[at:], "1"]).returncode == 0
    assert newest(tmp_path)["name"] == "step-1"


LAST = DurableCheckpoint("step-2", 2, 2, 10, 0.0, 0.0, ("nothing shows where it ends",))


@pytest.mark.parametrize(
    ("code", "durable", "doubt", "expected"),
    [
        (0, True, False, 0),
        (0, True, True, 76),
        (0, False, True, 74),
        (3, True, True, 3),
        (3, False, False, 3),
    ],
)
def test_a_doubtful_last_checkpoint_has_a_code_of_its_own(
    capsys: pytest.CaptureFixture[str], code: int, durable: bool, doubt: bool, expected: int
) -> None:
    problem = Problem("the last checkpoint is doubtful", "a is open", "Confirm it") if doubt else None
    assert _conclude(code, Durability(durable=durable, last=LAST), problem) == expected
    said = capsys.readouterr().err
    assert ("the last checkpoint is doubtful (a is open). Confirm it." in said) is doubt
    assert ("not durable" in said) is not durable


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ([], r"dataset: 2 files, 9\.8 KiB in \S+ s at \S+\n"),
        (["-q"], ""),
        (["-v"], r"(podferry: \d\d:\d\d:\d\d [^\n]+\n)+dataset: 2 files[^\n]+\n"),
        (["--log-format", "json"], r'\{"event": "dataset: 2 files, [^"]+", "level": "info", [^\n]+\}\n'),
    ],
)
def test_the_user_chooses_how_much_is_printed_and_for_whom(remote, tmp_path, options, pattern):
    words = ["run", *options, "--dataset", str(remote), "--", "true"]
    done = run([sys.executable, "-m", "podferry.cli.main", *words], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert re.fullmatch(pattern, done.stderr), done.stderr


def test_a_store_that_does_not_answer_is_two_lines(tmp_path):
    """When it begins, and what it ends with: not one for each of the attempts."""
    with socket.socket() as refusing:
        refusing.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{refusing.getsockname()[1]}"
        words = ["dataset", "get", "s3://b/x", "./x", "--endpoint", endpoint]
        keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
        done = run(
            [sys.executable, "-m", "podferry.cli.main", *words], cwd=tmp_path, env={**os.environ, **keys}
        )
    assert (done.returncode, done.stdout) == (1, "")
    began, ended = done.stderr.splitlines()
    assert "retrying: the store does not respond" in began
    assert ended.startswith("podferry: the store does not respond")


class WaitedFor:
    """An agent whose requests are interrupted or answered, as listed."""

    def __init__(self, *answers: Durability | Interrupted) -> None:
        self.client, self.detached, self._answers = self, False, iter(answers)

    def wait_durable(self, *_: object, **__: object) -> Durability:
        answer = next(self._answers)
        if isinstance(answer, Interrupted):
            raise answer
        return answer

    def detach(self) -> None:
        self.detached = True

    def not_durable(self) -> tuple[str, ...]:
        return ("of the journal",)


class Calls:
    def interruptible(self, call):
        return call()


@pytest.mark.parametrize(
    ("answers", "pending"),
    [
        ((Interrupted(2), Durability(durable=True)), ()),
        ((Interrupted(2), Interrupted(2)), ("of the journal",)),
    ],
)
def test_a_signal_ends_the_wait_with_a_look_and_another_one_the_look(answers, pending):
    agent = WaitedFor(*answers)
    found = _wait(agent, Calls(), 600.0, 0)
    assert (found.pending, found.durable, agent.detached) == (pending, not pending, True)
