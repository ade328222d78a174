"""Starts the agent as a child: what `podferry run` and `ferry` share. Pods have it as a sidecar instead.

The child is a process of its own so that it outlives a trainer that is killed, and makes what was whole
durable. It ends when this process does: its standard input is a pipe whose other end nobody else holds.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from podferry.contract.api import SPEC_VARIABLE
from podferry.contract.errors import InvalidSpec
from podferry.contract.spec import FerrySpec
from podferry.contract.spec_json import encode_spec
from podferry.sidecar.config.directories import Directories, ensure_dir, sibling_dir
from podferry.sidecar.control.http_client import AgentClient
from podferry.sidecar.launch.local_spec import local_spec

MEMORY = Path("/dev/shm")  # noqa: S108 - where memory is on Linux; the directory below it is the user's own
GRACE = 30.0
"""Seconds that the agent may drain once this process has gone."""


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """How to start an agent.

    Attributes:
        grace: Seconds that a drain may take.
        polling: Scan in intervals even where inotify works.
        run: KFP's run id, None outside KFP.
        quiet: Log warnings only: somebody else shows the progress.
    """

    grace: float = GRACE
    polling: bool = False
    run: str | None = None
    quiet: bool = False


class LocalAgent:
    """An agent that this process has started."""

    def __init__(self, process: subprocess.Popen[bytes], url: str, places: Directories) -> None:
        self.process = process
        self.url = url
        self.places = places
        self.client = AgentClient(url)
        self._left = False

    def leave(self) -> None:
        """Leave it to itself: it drains within its grace, and ends."""
        self._left = True

    def end(self, timeout: float = GRACE + 15.0) -> None:
        """Tell it to drain and end, and wait; one that does not end is killed."""
        assert self.process.stdin is not None  # noqa: S101 - it was started with a pipe
        self.process.stdin.close()
        if self._left:
            return
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def private_base() -> Path:
    """A new directory of this user alone, in memory where there is some."""
    root = MEMORY if os.access(MEMORY, os.W_OK) else Path(tempfile.gettempdir())
    return Path(tempfile.mkdtemp(prefix=f"podferry-{os.getuid()}-", dir=root))


def local_directories(spec: FerrySpec, base: Path) -> Directories:
    """The directories of a run on this machine; those that the user named are made below existing ones.

    Raises:
        InvalidSpec: A directory's parent does not exist, which is rather a slip than a wish, or it cannot
            be made or written.
    """
    datasets = {dataset.name: Path(dataset.path) for dataset in spec.datasets}
    checkpoints = Path(spec.checkpoints.path) if spec.checkpoints else None
    outputs = Path(spec.outputs.path) if spec.outputs else None
    named = [path for path in (*datasets.values(), checkpoints, outputs) if path is not None]
    InvalidSpec.raise_any(filter(None, map(ensure_dir, named)))
    own = sibling_dir(checkpoints) if checkpoints else None
    return Directories(
        control=base / "control",
        datasets=datasets,
        claims={name: sibling_dir(path) for name, path in datasets.items()},
        checkpoints=checkpoints,
        pins=own / "pins" if own else None,
        outputs=outputs,
        temporary=(base, *([own] if own else [])),
    )


def launch(
    options: Mapping[str, object],
    command: Sequence[str],
    how: LaunchOptions = LaunchOptions(),
) -> LocalAgent:
    """Start an agent for a command on this machine.

    Raises:
        InvalidSpec: Everything that is wrong with the options.
    """
    base = private_base()
    try:
        spec = local_spec(options, command, base)
        places = local_directories(spec, base)
    except BaseException:
        shutil.rmtree(base)
        raise
    with socket.create_server(("127.0.0.1", 0)) as listener:
        environment = {**os.environ, SPEC_VARIABLE: encode_spec(spec).decode()}
        arguments = [*_flags(places, how), "--until-stdin-closes", "--listen-fd", str(listener.fileno())]
        process = subprocess.Popen(
            [sys.executable, "-m", "podferry.cli.main", "agent", *arguments],
            stdin=subprocess.PIPE,
            env=environment,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )
        port = listener.getsockname()[1]
    return LocalAgent(process, f"http://127.0.0.1:{port}", places)


def _flags(places: Directories, how: LaunchOptions) -> list[str]:
    named = {
        "--control-dir": places.control,
        "--checkpoint-dir": places.checkpoints,
        "--pins-dir": places.pins,
        "--output-dir": places.outputs,
        "--run-id": how.run,
        "--grace": how.grace,
    }
    flags = [text for flag, value in named.items() if value is not None for text in (flag, str(value))]
    for flag, folders in (("--dataset-dir", places.datasets), ("--claim-dir", places.claims)):
        flags += [f"{flag}={_named(name, folder)}" for name, folder in folders.items()]
    flags += [text for folder in places.temporary for text in ("--temporary-dir", str(folder))]
    return [
        *flags,
        *(["--polling"] if how.polling else []),
        *(["--log-level", "warning"] if how.quiet else []),
    ]


def _named(name: str, folder: Path) -> str:
    return f"{name}={folder}" if name else str(folder)
