"""Runs over the same directory, by `podferry run`: an earlier one's leftovers never stop a later one."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from podferry.contract.destination.commit import decode_commit

KILLED = """
import os, pathlib, signal, time
root = pathlib.Path(os.environ["PODFERRY_CHECKPOINTS"])
with open(root / "last.npz", "wb") as file:
    file.write(b"PK\\3\\4 torn")
    file.flush()
    os.kill(os.getppid(), signal.SIGKILL)  # the agent drains on its own
    os.kill(os.getpid(), signal.SIGKILL)
"""
RESUMES = """
import os, pathlib, shutil, sys
root = pathlib.Path(os.environ["PODFERRY_CHECKPOINTS"])
print("restored", os.path.basename(os.environ.get("PODFERRY_RESTORED", "nothing")))
print("there", sorted(path.name for path in root.iterdir()))
"""


def archive(text: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        file.writestr("weights", text * 1000)
    return data.getvalue()


class Site:
    """A checkpoint directory of the user's own, and its destination."""

    def __init__(self, base: Path) -> None:
        self.base, self.root, self.remote = base, base / "ckpts", base / "remote"
        self.root.mkdir()

    def run(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        places = ["--checkpoints", str(self.remote), "--checkpoint-path", str(self.root), "--lineage", "t"]
        command = [sys.executable, "-m", "podferry.cli.main", "run", *places, *words]
        return subprocess.run(
            [*command, "--", sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    def save(self, name: str, data: bytes) -> str:
        """A program that writes a checkpoint whole, under another name first."""
        (self.base / "source").write_bytes(data)
        return (
            "import os, shutil\nroot = os.environ['PODFERRY_CHECKPOINTS']\n"
            f"shutil.copy({str(self.base / 'source')!r}, root + '/.new')\n"
            f"os.rename(root + '/.new', root + '/{name}')\n"
        )

    def leftovers(self) -> dict[str, bytes]:
        """Files that were moved away, by name."""
        found = (self.base / "ckpts.podferry-leftovers").rglob("*")
        return {path.name: path.read_bytes() for path in found if path.is_file()}

    def commits(self) -> list[str]:
        found = sorted((self.remote / "t/.podferry/commits").iterdir())
        return [decode_commit(path.read_bytes(), path.name).name for path in found]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_kill_while_last_is_overwritten_costs_one_version(site: Site) -> None:
    whole = archive("one")
    assert site.run(site.save("last.npz", whole)).returncode == 0
    site.run(KILLED)
    torn = (site.root / "last.npz").read_bytes()
    assert torn != whole
    done = site.run(RESUMES)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["restored last.npz", "there ['last.npz']"]
    assert (site.root / "last.npz").read_bytes() == whole
    assert site.leftovers() == {"last.npz": torn}
    assert "leftovers of an earlier run were moved to" in done.stderr


def test_an_old_torn_directory_does_not_fail_later_good_runs(site: Site) -> None:
    assert site.run(site.save("step-1.npz", archive("one"))).returncode == 0
    (site.root / "step-9").mkdir()
    (site.root / "step-9" / "weights.npz").write_bytes(archive("nine")[:-9])
    (site.root / "step-9" / "config.json").write_text("{}")
    done = site.run(site.save("step-2.npz", archive("two")))
    assert done.returncode == 0, done.stderr
    assert site.commits() == ["step-1", "step-2"]
    assert sorted(site.leftovers()) == ["config.json", "weights.npz"]
    assert sorted(path.name for path in site.root.iterdir()) == ["step-1.npz", "step-2.npz"]


def test_what_an_earlier_run_saved_whole_is_still_uploaded(site: Site) -> None:
    assert site.run(site.save("step-1.npz", archive("one"))).returncode == 0
    (site.root / "step-2.npz").write_bytes(archive("two"))  # it did not become durable
    assert site.run(site.save("step-3.npz", archive("three"))).returncode == 0
    assert site.commits() == ["step-1", "step-2", "step-3"]
    assert site.leftovers() == {}


def test_a_damaged_file_within_a_restored_directory_moves_the_directory(site: Site) -> None:
    make = (
        "import os, pathlib\n"
        "new = pathlib.Path(os.environ['PODFERRY_CHECKPOINTS'], '.new'); new.mkdir()\n"
        "(new / 'a.bin').write_bytes(b'a' * 9000); (new / 'b.bin').write_bytes(b'b' * 9000)\n"
        "new.rename(new.with_name('step-1'))\n"
    )
    assert site.run(make).returncode == 0
    (site.root / "step-1" / "a.bin").write_bytes(b"x" * 9000)
    (site.root / "step-1" / "of-a-later-save.bin").write_bytes(b"y")
    done = site.run(RESUMES)
    assert done.returncode == 0, done.stderr
    found = {path.name: path.read_bytes()[:1] for path in (site.root / "step-1").iterdir()}
    assert found == {"a.bin": b"a", "b.bin": b"b"}
    assert sorted(site.leftovers()) == ["a.bin", "b.bin", "of-a-later-save.bin"]
