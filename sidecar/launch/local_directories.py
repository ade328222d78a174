"""The directories of a local run: data in memory, the agent's own files in another volume."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from podferry.contract.errors import InvalidSpec, Refused
from podferry.contract.spec import FerrySpec
from podferry.sidecar.config.directories import Directories
from podferry.sidecar.config.local_path import ensure_dir, sibling_dir
from podferry.sidecar.config.run_directory import RunDirectory

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - memory on Linux; the directory below it belongs to the user
DISKS = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - likewise
PREFIX = "podferry-"
PRIVATE_MODE = 0o700


@dataclass(frozen=True, slots=True)
class LocalRun:
    """The directories that are made for one run.

    Attributes:
        directory: The agent's own, and the locks.
        data: What the user gave no directory, usually in memory.
    """

    directory: RunDirectory
    data: Path

    def remove(self) -> None:
        """Remove both."""
        for path in (self.data, self.directory.path):
            shutil.rmtree(path, ignore_errors=True)


def memory_root() -> Path:
    """Where data goes: memory if possible."""
    return SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else Path(tempfile.gettempdir())


def run_roots() -> list[Path]:
    """Where directories of runs may be, the preferred one first: on disk if possible."""
    roots = []
    with suppress(FileNotFoundError):  # nothing is writable
        roots.append(Path(tempfile.gettempdir()))
    return list(dict.fromkeys([*roots, *DISKS]))


def create_run() -> LocalRun:
    """Make the directories of a run, for this user only.

    Raises:
        Refused: A directory cannot be made.
    """
    memory = memory_root()
    try:
        while True:
            path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getuid()}-", dir=_run_root(memory)))
            apart = path.parent != memory
            data = memory / path.name if apart else path / "data"
            try:
                data.mkdir(PRIVATE_MODE)
            except FileExistsError:
                path.rmdir()
            else:
                return LocalRun(RunDirectory(path), data)
    except OSError as error:
        remedy = "Free some space there, or set TMPDIR to a directory with space"
        raise Refused.of("the directories of the run cannot be made", str(error), remedy) from error


def _run_root(memory: Path) -> Path:
    """Not in the volume of the data, which the trainer may fill."""
    device = memory.stat().st_dev
    usable = [root for root in run_roots() if os.access(root, os.W_OK | os.X_OK)]
    return next((root for root in usable if root.stat().st_dev != device), memory)


def local_directories(spec: FerrySpec, run: LocalRun) -> Directories:
    """The directories of a local run; those that the user named are created if their parent exists.

    Raises:
        InvalidSpec: A directory's parent does not exist, which is probably a typo, or the directory cannot be
            created or written.
    """
    datasets = {dataset.name: Path(dataset.path) for dataset in spec.datasets}
    checkpoints = Path(spec.checkpoints.path) if spec.checkpoints else None
    outputs = Path(spec.outputs.path) if spec.outputs else None
    required = [path for path in (*datasets.values(), checkpoints, outputs) if path is not None]
    InvalidSpec.raise_any(filter(None, map(ensure_dir, required)))
    own = sibling_dir(checkpoints) if checkpoints else None
    return Directories(
        control=run.directory.control,
        datasets=datasets,
        ownership={name: sibling_dir(path) for name, path in datasets.items()},
        checkpoints=checkpoints,
        holds=own / "pins" if own else None,
        outputs=outputs,
        temporary=(run.data, *([own] if own else [])),
        run=run.directory,
    )


def found_below(roots: list[Path]) -> Iterator[Path]:
    """Directories of podferry below `roots`, of all users."""
    for root in dict.fromkeys(roots):
        with suppress(OSError):
            yield from (path for path in sorted(root.glob(f"{PREFIX}*-*")) if not path.is_symlink())
