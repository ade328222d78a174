"""Starts an agent as a child process, for `podferry run` and `ferry`. Pods have it as a sidecar instead.

The child is a separate process so that it outlives a trainer that is killed, and makes the complete
checkpoints durable. It ends with this process: its standard input is a pipe whose other end only this process
holds.
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

from podferry.contract.errors import InvalidSpec
from podferry.contract.http_api import SPEC_VARIABLE
from podferry.contract.spec import FerrySpec
from podferry.contract.spec_json import encode_spec
from podferry.sidecar.config.directories import Directories, ensure_dir, sibling_dir
from podferry.sidecar.control.http_client import AgentClient
from podferry.sidecar.launch.local_spec import local_spec

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - memory on Linux; the directory below it belongs to the user
GRACE_SECONDS = 30.0
"""For the agent's drain after this process has ended."""


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """How to start an agent.

    Attributes:
        grace_seconds: For a drain.
        polling: Scan at intervals even if inotify works.
        run_id: KFP's run id; None outside KFP.
        quiet: Log warnings only: the caller shows the progress.
    """

    grace_seconds: float = GRACE_SECONDS
    polling: bool = False
    run_id: str | None = None
    quiet: bool = False


class LocalAgent:
    """An agent that this process has started."""

    def __init__(self, process: subprocess.Popen[bytes], url: str) -> None:
        self.process = process
        self.url = url
        self.client = AgentClient(url)
        self._detached = False

    def detach(self) -> None:
        """Do not wait for it: it drains within its grace period, and exits."""
        self._detached = True

    def stop(self, timeout: float = GRACE_SECONDS + 15.0) -> None:
        """Let it drain and exit, and wait unless detached; kill it after `timeout` seconds."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        if self._detached:
            return
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def private_base() -> Path:
    """A new directory for this user only, in memory if possible."""
    root = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else Path(tempfile.gettempdir())
    return Path(tempfile.mkdtemp(prefix=f"podferry-{os.getuid()}-", dir=root))


def local_directories(spec: FerrySpec, base: Path) -> Directories:
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
        control=base / "control",
        datasets=datasets,
        ownership={name: sibling_dir(path) for name, path in datasets.items()},
        checkpoints=checkpoints,
        holds=own / "pins" if own else None,
        outputs=outputs,
        temporary=(base, *([own] if own else [])),
    )


def launch(
    settings: Mapping[str, object], command: Sequence[str], options: LaunchOptions = LaunchOptions()
) -> LocalAgent:
    """Start an agent for a command on this machine; settings, command and errors as for `local_spec`."""
    base = private_base()
    try:
        spec = local_spec(settings, command, base)
        directories = local_directories(spec, base)
    except BaseException:  # including Ctrl-C: without an agent, nothing else removes the directory
        shutil.rmtree(base)
        raise
    with socket.create_server(("127.0.0.1", 0)) as listener:
        environment = {**os.environ, SPEC_VARIABLE: encode_spec(spec).decode()}
        flags = [*_flags(directories, options), "--until-stdin-closes", "--listen-fd", str(listener.fileno())]
        process = subprocess.Popen(
            [sys.executable, "-m", "podferry.cli.main", "agent", *flags],
            stdin=subprocess.PIPE,
            env=environment,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )
        port = listener.getsockname()[1]
    return LocalAgent(process, f"http://127.0.0.1:{port}")


def _flags(directories: Directories, options: LaunchOptions) -> list[str]:
    values = {
        "--control-dir": directories.control,
        "--checkpoint-dir": directories.checkpoints,
        "--pins-dir": directories.holds,
        "--output-dir": directories.outputs,
        "--run-id": options.run_id,
        "--grace": options.grace_seconds,
    }
    flags = [text for flag, value in values.items() if value is not None for text in (flag, str(value))]
    by_dataset = {"--dataset-dir": directories.datasets, "--claim-dir": directories.ownership}
    for flag, paths in by_dataset.items():
        flags += [f"{flag}={name}={path}" if name else f"{flag}={path}" for name, path in paths.items()]
    flags += [text for path in directories.temporary for text in ("--temporary-dir", str(path))]
    if options.polling:
        flags.append("--polling")
    return [*flags, "--log-level", "warning"] if options.quiet else flags
