"""The mounts of a node whose cache shares its data, in a mount namespace of their own, which end with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from faults.pod import unshared

MOUNTS = """set -e
mount -t tmpfs -o size=3g,mode=0755,nosuid,nodev podferry stage
mount --bind stage read
mount -o remount,bind,ro read
echo mounted
exec sleep infinity
"""


@dataclass(frozen=True, slots=True)
class NodeMounts:
    """A writable mount and its read-only view.

    Attributes:
        folder: Where they are.
        process: Whose namespace has them.
    """

    folder: Path
    process: int

    @property
    def stage(self) -> Path:
        """Where a holder writes."""
        return self.folder / "stage"

    @property
    def view(self) -> Path:
        """The same, read-only."""
        return self.folder / "read"

    def inside(self, words: Sequence[str]) -> list[str]:
        """A command that sees them."""
        user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        return ["nsenter", f"--target={self.process}", "--mount", *user, "--", *words]


@contextmanager
def node_mounts(folder: Path) -> Iterator[NodeMounts | None]:
    """The mounts below a folder, which is created; None if this user may not mount."""
    private = unshared()
    if not private:
        yield None
        return
    for name in ("stage", "read"):
        (folder / name).mkdir(parents=True)
    words = [*private, "sh", "-c", MOUNTS]
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None  # noqa: S101 - it is a pipe
            if process.stdout.readline() != b"mounted\n":
                raise RuntimeError("the mounts of a node cannot be made")
            yield NodeMounts(folder, process.pid)
        finally:
            process.kill()
    shutil.rmtree(folder)
