"""An agent as a pod's sidecar has it: what starts it, and what its log says of its worker."""

from __future__ import annotations

import re
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from faults.ledger import Violation
from podferry.contract.spec_json import encode_spec
from podferry.sidecar.launch.local_spec import local_spec

CRASH = re.compile(r"the worker exited with (-?\d+)")


def free_port() -> int:
    """A port of this machine that nobody listens on by now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def agent_command(
    settings: Mapping[str, str], trainer: Sequence[str], base: Path, pins: Path, port: int
) -> list[str]:
    """What starts an agent as a pod's sidecar is started.

    Args:
        settings: Options of `podferry run`, by their names in Python; the checkpoints' path is one.
        trainer: The command next to it.
        base: For its control directory.
        pins: On the checkpoints' file system.
        port: Of its API.
    """
    spec = encode_spec(local_spec(settings, trainer, base)).decode()
    places = ["--control-dir", str(base / "control"), "--checkpoint-dir", settings["checkpoint_path"]]
    places += ["--pins-dir", str(pins), "--port", str(port), "--spec", spec]
    return [sys.executable, "-m", "podferry.cli.main", "agent", *places]


def crashes(log: Path, who: str) -> list[Violation]:
    """Ends of a worker by itself: what its supervisor has said of them.

    SIGTERM ends one that has only just begun, and another one takes its place to drain.
    """
    found = CRASH.findall(log.read_text(errors="replace"))
    codes = [code for code in found if int(code) not in {-signal.SIGKILL, -signal.SIGTERM}]
    return [Violation("crashed", f"{who}: the worker ended by itself with {code}") for code in codes]
