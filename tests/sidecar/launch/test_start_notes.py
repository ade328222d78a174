"""What is said before training starts; the volumes are real where this machine lets a test mount one."""

import subprocess
import sys

import pytest

from podferry.contract.spec import FerrySpec
from podferry.sidecar.config.directories import Directories
from podferry.sidecar.launch.start_notes import start_notes
from tests.support.patience import PATIENCE

UNSHARE = ["unshare", "--mount", "--map-root-user"]
SCRIPT = """
mount -t tmpfs -o size="$1" tmpfs /dev/shm && head -c "$2" /dev/zero > /dev/shm/x && shift 2 && exec "$@"
"""
TRAIN = """
import os, pathlib, sys
folder = pathlib.Path(os.environ["PODFERRY_CHECKPOINTS"])
(folder / "epoch-1.bin").write_bytes(bytes(40 << 20))
try:
    (folder / "epoch-2.bin").write_bytes(bytes(40 << 20))
except OSError as error:
    sys.exit(str(error))
"""


def in_volume(size, used, *command):
    """Run a command that has a /dev/shm of a size of its own."""
    words = [*UNSHARE, "sh", "-c", SCRIPT, "sh", size, str(used), *command]
    return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.fixture
def run(tmp_path):
    if in_volume("1m", 0, "true").returncode:
        pytest.skip("this machine does not let a test mount a file system")

    def podferry(size, used):
        words = ["run", "--checkpoints", str(tmp_path / "destination"), "--lineage", "t"]
        return in_volume(
            size, used, sys.executable, "-m", "podferry.cli.main", *words, "--", sys.executable, "-c", TRAIN
        )

    return podferry


def test_a_trainer_that_fills_dockers_64_mib_does_not_take_the_agent_down(run, tmp_path):
    done = run("64m", 0)
    assert done.returncode == 1
    assert "podferry: /dev/shm is small" in done.stderr
    assert "(64.0 MiB, of which 64.0 MiB are free)" in done.stderr
    assert "--shm-size=8g" in done.stderr
    assert "No space left on device" in done.stderr
    assert "restarting" not in done.stderr
    commit = tmp_path / "destination/t/.podferry/commits/000000000001.json"
    assert '"epoch-1"' in commit.read_text(), "what was complete is durable"


def test_a_full_volume_is_refused(run):
    done = run("2m", 1_800_000)
    assert done.returncode == 78
    assert "/dev/shm is full" in done.stderr
    assert "podferry leftovers ls" in done.stderr


def test_a_disk_has_no_note(tmp_path):
    assert start_notes(FerrySpec(), Directories(tmp_path, outputs=tmp_path)) == ()
