"""One pod of an episode: its volume, its processes, and the hand that kills them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from faults.agents import agent_command, crashes, free_port
from faults.family import Family
from faults.ledger import Violation
from faults.plan import MIB
from faults.scene import ROOT, Scene

HERE = Path(__file__).parent
DURABLE = 45.0
"""Seconds that `podferry run` waits at its end: longer than any fault lasts."""
LINEAGE = "episode"
ENDED = (0, 76)
"""Exit codes after which training has ended: all is durable, and the last one is sure or doubtful."""
PRIVATE = (["unshare", "--mount"], ["unshare", "--mount", "--map-root-user"])


@cache
def unshared() -> Sequence[str]:
    """What begins a command that has volumes of its own; empty where this machine does not let it."""
    for words in PRIVATE:
        done = (
            subprocess.run([*words, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False)
            if shutil.which("unshare")
            else None
        )
        if done is not None and done.returncode == 0:
            return words
    return ()


class Pod:
    """One life: fresh directories, `restore auto`.

    Args:
        scene: What it belongs to.
        number: From 1.
        extra: More options for the trainer.
    """

    def __init__(self, scene: Scene, number: int, extra: Sequence[str]) -> None:
        self._scene = scene
        self.number = number
        self.family = Family(f"{os.getpid()}/{scene.plan.seed}/{number}")
        self._answer = scene.folder / f"pod-{number}-answer.json"
        base = Path("/dev/shm") if unshared() else scene.folder / f"pod-{number}"  # noqa: S108 - its own mount
        self._volume = base / "volume"
        self._log = (scene.folder / f"pod-{number}.log").open("wb")
        self.process = self._start(self._private(self._command(base, extra)))

    def _start(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        paths = [str(HERE / "patched"), str(ROOT), os.environ.get("PYTHONPATH", "")]
        environment = {
            **os.environ,
            **self._scene.environment,
            **self.family.environment,
            "FAULTS_CLOCK": str(self._scene.clock),
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        }
        return subprocess.Popen(
            command,
            env=environment,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    def _private(self, command: Sequence[str]) -> Sequence[str]:
        """The command with volumes of its own, which go with its last process."""
        if not unshared():
            self._volume.mkdir(parents=True)
            return command
        size = 16 * (self._scene.plan.count * 4) + 16 * MIB
        script = (
            "mount -t tmpfs -o size=64m tmpfs /dev/shm && mkdir /dev/shm/volume && "
            f'mount -t tmpfs -o size={size} tmpfs /dev/shm/volume && exec "$@"'
        )
        return [*unshared(), "sh", "-c", script, "sh", *command]

    def _command(self, base: Path, extra: Sequence[str]) -> list[str]:
        scene, trainer = self._scene, self._scene.trainer(extra)
        directory = self._volume / "checkpoints"
        settings = {
            "checkpoints": scene.uri,
            "checkpoint_path": str(directory),
            "lineage": LINEAGE,
            "endpoint": scene.endpoint,
        }
        if scene.plan.sidecar:
            return self._sidecar(settings, base, directory, trainer)
        options = [
            word for name, value in settings.items() for word in (f"--{name.replace('_', '-')}", value)
        ]
        durable = ["--durable-timeout", str(DURABLE)]
        return [sys.executable, "-m", "podferry.cli.main", "run", *options, *durable, "--", *trainer]

    def _sidecar(
        self, settings: Mapping[str, str], base: Path, directory: Path, trainer: list[str]
    ) -> list[str]:
        port = free_port()
        config = {
            "agent": agent_command(settings, trainer, base, self._volume / "pins", port),
            "trainer": trainer,
            "port": port,
            "directory": str(directory),
            "answer": str(self._answer),
        }
        file = self._scene.folder / f"pod-{self.number}.json"
        file.write_text(json.dumps(config))
        return [sys.executable, "-m", "faults.kubelet", str(file)]

    def code(self) -> int | None:
        """The exit code, None while it runs."""
        return self.process.poll()

    def said_durable(self) -> bool:
        """Whether podferry reported at the end that all of it is durable."""
        if not self._scene.plan.sidecar:
            return self.process.poll() in ENDED
        return self._answer.exists() and bool(json.loads(self._answer.read_text())["durable"])

    def said_sure(self) -> bool:
        """Whether it reported as well that the newest one is proven complete."""
        if not self._scene.plan.sidecar:
            return self.process.poll() == 0
        return self.said_durable() and not (json.loads(self._answer.read_text())["last"] or {}).get("doubts")

    def crashes(self) -> list[Violation]:
        """Ends of the worker by itself."""
        return crashes(Path(self._log.name), f"pod {self.number}")

    def outlived(self) -> bool:
        """Whether the agent lives on when what started it has ended; a trainer does not."""
        self.family.kill("trainer")
        return bool(self.family.find())

    def delete(self) -> None:
        """What a node does first when a pod is deleted."""
        self.process.terminate()

    def fill(self, left: int) -> bool:
        """Fill the checkpoint volume up to so many bytes; whether that was possible."""
        ballast = self._ballast()
        if ballast is None:
            return False
        try:
            room = os.statvfs(ballast.parent)
            with ballast.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, max(room.f_bavail * room.f_frsize - left, 1))
        except OSError:
            return False
        return True

    def empty(self) -> None:
        """Take out what filled the volume."""
        ballast = self._ballast()
        if ballast is not None:
            with contextlib.suppress(OSError):
                ballast.unlink()

    def _ballast(self) -> Path | None:
        return Path(f"/proc/{self.process.pid}/root{self._volume}/ballast") if unshared() else None

    def close(self, patience: float = 0.0) -> None:
        """End whatever is left of it."""
        deadline = time.monotonic() + patience
        while self.family.find() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.family.end(self.process.poll)
        self.process.wait()
        self._log.close()
        if not unshared():
            shutil.rmtree(self._volume.parent, ignore_errors=True)
