"""Nothing is left out in silence, by `podferry run`: what is not uploaded is named, or followed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from podferry.contract.destination.commit import Commit, decode_commit

PRELUDE = "import os, pathlib\nroot = pathlib.Path(os.environ['PODFERRY_CHECKPOINTS'])\n"


class Site:
    def __init__(self, base: Path) -> None:
        self.base, self.remote = base, base / "remote"

    def run(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        places = ["--checkpoints", str(self.remote), "--lineage", "t", *words]
        command = [sys.executable, "-m", "podferry.cli.main", "run", *places]
        return subprocess.run(
            [*command, "--", sys.executable, "-c", PRELUDE + program],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    def newest(self) -> Commit:
        newest = max((self.remote / "t/.podferry/commits").iterdir())
        return decode_commit(newest.read_bytes(), newest.name)

    def files(self) -> dict[str, bytes]:
        """What the newest commit lists, by name."""
        files = self.newest().files
        return {file.name: (self.remote / "t" / file.object).read_bytes() for file in files}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_name_that_begins_like_a_temporary_one_is_a_checkpoint(site: Site) -> None:
    done = site.run("(root / 'tmpnet-100.bin').write_bytes(b'w' * 9000)")
    assert done.returncode == 0, done.stderr
    assert site.files() == {"tmpnet-100.bin": b"w" * 9000}


def test_links_within_the_directory_are_followed(site: Site) -> None:
    done = site.run(
        "step = root / 'step-1'; (step / 'v1').mkdir(parents=True)\n"
        "(step / 'v1' / 'w.bin').write_bytes(b'w' * 9000)\n"
        "(step / 'model.bin').symlink_to('v1/w.bin')\n"
        "(step / 'now').symlink_to('v1')\n"
        "(root / 'last').symlink_to('step-1')\n"
    )
    assert done.returncode == 0, done.stderr
    assert site.files() == dict.fromkeys(
        ("step-1/model.bin", "step-1/now/w.bin", "step-1/v1/w.bin"), b"w" * 9000
    )


@pytest.mark.parametrize(
    ("link", "doubtful"),
    [
        ("(root / 'step-2').symlink_to(away)", False),
        ("(root / 'step-1' / 'v.bin').symlink_to(away / 'v.bin')", True),
    ],
)
def test_a_link_that_leaves_the_directory_is_refused_by_name(site: Site, link: str, doubtful: bool) -> None:
    done = site.run(
        "import tempfile\naway = pathlib.Path(tempfile.mkdtemp())\n"
        "(away / 'v.bin').write_bytes(b'v' * 9000)\n"
        "(root / 'step-1').mkdir(); (root / 'step-1' / 'w.bin').write_bytes(b'w' * 9000)\n"
        f"{link}\nprint(root)\n"
    )
    assert done.returncode == 74, done.stderr
    assert "a link that leaves the directory" in done.stderr
    assert Path(done.stdout.strip()).is_dir(), "the directory is kept"
    assert list(site.files()) == ["step-1/w.bin"]
    reasons = [doubt.reason for doubt in site.newest().doubts]
    assert ("step-1/v.bin is a link that leaves the directory" in reasons) == doubtful


def test_an_unfinished_file_with_data_at_the_end_is_named(site: Site) -> None:
    done = site.run(
        "(root / 'step-1.bin').write_bytes(b'w' * 9000)\n"
        "(root / 'step-2.bin.tmp').write_bytes(b'w' * 5000)\nprint(root)\n"
    )
    assert done.returncode == 74, done.stderr
    assert "not durable: step-2.bin.tmp" in done.stderr
    assert "last durable checkpoint: step-1" in done.stderr
    assert Path(done.stdout.strip(), "step-2.bin.tmp").is_file()


def test_what_was_there_before_and_what_has_no_data_fails_no_run(site: Site) -> None:
    root = site.base / "ckpts"
    root.mkdir()
    (root / "old.tmp").write_bytes(b"o")
    (root / ".gitignore").write_text("*.bin")
    program = "(root / 'step-1.bin').write_bytes(b'w' * 9000); (root / 'empty.tmp').touch()"
    done = site.run(program, "--checkpoint-path", str(root))
    assert done.returncode == 0, done.stderr
