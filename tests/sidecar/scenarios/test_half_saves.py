"""Trainers that are stopped in the middle of a save, under `podferry run`: the next run gets a whole one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from podferry.contract.exit_codes import EXIT_DOUBTFUL

PRELUDE = """
import os, pathlib, pickle, signal, sys, time
root = pathlib.Path(os.environ["PODFERRY_CHECKPOINTS"])
def save(folder, *names, data=b"w" * 5000):
    (root / folder).mkdir(exist_ok=True)
    for name in names:
        (root / folder / name).write_bytes(pickle.dumps(data))
"""
DIE = "os.kill(os.getpid(), signal.SIGKILL)\n"
WHICH = "print(sorted(p.relative_to(root).as_posix() for p in root.rglob('*') if p.is_file()))\n"


@pytest.fixture
def train(tmp_path):
    def run(program: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "podferry.cli.main", "run", "--lineage", "t"]
        command += ["--checkpoints", str(tmp_path / "destination"), "--", sys.executable, "-c"]
        return subprocess.run(
            [*command, PRELUDE + program], capture_output=True, text=True, timeout=300, check=False
        )

    return run


def test_a_trainer_killed_between_two_files_resumes_from_the_save_before(train):
    both = "save('step-1', 'model.pkl', 'optimizer.pkl')\nsave('step-2', 'model.pkl', 'optimizer.pkl')\n"
    killed = train(f"{both}save('step-3', 'model.pkl')\n{DIE}")
    assert killed.returncode == 137, killed.stderr
    assert "step-3" in killed.stderr
    assert "doubtful" in killed.stderr
    again = train(WHICH)
    assert again.stdout.strip() == "['step-2/model.pkl', 'step-2/optimizer.pkl']"
    assert "passed over: step-3" in again.stderr


def test_the_first_save_of_a_killed_trainer_is_not_trusted(train):
    assert train(f"save('step-1', 'model.pkl')\n{DIE}").returncode == 137
    again = train(WHICH)
    assert again.stdout.strip() == "[]"
    assert "TRAINING STARTS FROM THE BEGINNING" in again.stderr


def test_a_trainer_that_succeeds_proves_its_last_save(train):
    done = train("save('step-1', 'model.raw')")
    assert (done.returncode, "doubtful" in done.stderr) == (0, False)
    assert train(WHICH).stdout.strip() == "['step-1/model.raw']"


def test_a_success_with_fewer_files_than_before_is_reported(train):
    done = train("save('step-1', 'a.pkl', 'b.pkl')\ntime.sleep(0.1)\nsave('step-2', 'a.pkl')")
    assert done.returncode == EXIT_DOUBTFUL, done.stderr
    assert "step-2" in done.stderr
    assert train(WHICH).stdout.strip() == "['step-1/a.pkl', 'step-1/b.pkl']"


def test_a_save_in_the_signals_handler_is_sure(train):
    program = """
def stop(*_):
    (root / "ckpt-2.tmp").write_bytes(b"raw")
    (root / "ckpt-2.tmp").rename(root / "ckpt-2.raw")
    sys.exit(143)
signal.signal(signal.SIGTERM, stop)
os.kill(os.getpid(), signal.SIGTERM)
"""
    assert train(program).returncode == 143
    assert train(WHICH).stdout.strip() == "['ckpt-2.raw']"


def test_parts_side_by_side_are_restored_together(train):
    parts = "for name in ('model.pkl', 'optimizer.pkl', 'scheduler.pkl'):\n    "
    first = parts + "(root / name).write_bytes(pickle.dumps(name * 10))\n"
    second = "(root / 'model.pkl').write_bytes(pickle.dumps('torn' * 50))\n"
    assert train(first).returncode == 0
    assert train(second + DIE).returncode == 137
    shown = "print({p.name: pickle.loads(p.read_bytes()) for p in sorted(root.iterdir())})"
    assert train(shown).stdout.strip() == str(
        {name: name * 10 for name in ("model.pkl", "optimizer.pkl", "scheduler.pkl")}
    )


@pytest.mark.parametrize(
    "names",
    [
        ("netG_epoch_{}.pkl", "netD_epoch_{}.pkl"),
        ("model0{}0000.pkl", "opt0{}0000.pkl", "ema_0.9999_0{}0000.pkl"),
        ("G_{}.pkl", "D_{}.pkl"),
        ("model_{}.pkl", "optimizer_{}.pkl", "buffer_{}.pkl"),
    ],
    ids=["dcgan", "guided-diffusion", "vits", "buffer"],
)
def test_files_of_one_number_are_restored_together(train, names):
    program = f"""
for step in (1, 2, 3):
    for name in {names}:
        (root / name.format(step)).write_bytes(pickle.dumps(os.urandom(9000)))
    time.sleep(3)
"""
    assert train(program + DIE).returncode == 137
    assert train(WHICH).stdout.strip() == str(sorted(name.format(3) for name in names))


def test_a_late_half_is_not_taken_for_the_whole(train):
    program = """
for step in (1, 2, 3):
    (root / f"G_{step}.pkl").write_bytes(pickle.dumps(os.urandom(9000)))
    time.sleep(3)
    if step < 3:
        (root / f"D_{step}.pkl").write_bytes(pickle.dumps(os.urandom(9000)))
        time.sleep(3)
"""
    assert train(program + DIE).returncode == 137
    again = train(WHICH)
    assert again.stdout.strip() == "['D_2.pkl', 'G_2.pkl']"
    assert "passed over: G_3" in again.stderr
