"""rclone as the usual tool of an object store: 16 transfers at a time, four times its default."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from serving import HERE

RCLONE = str(HERE / "rclone")
OPTIONS = ("--config", "/dev/null", "--transfers", "16", "--checkers", "16", "--ignore-times")


def rclone_peer(
    remote: Mapping[str, str], files: Path
) -> tuple[Callable[[str, Path], list[str]], dict[str, str]]:
    """Copies all sets to the bucket `bucket`; the words that download one, and their environment."""
    environment = {f"RCLONE_CONFIG_STORE_{name}": value for name, value in remote.items()}
    words = [RCLONE, "copy", *OPTIONS, str(files), "store:bucket"]
    subprocess.run(words, env=environment, check=True, capture_output=True)

    def peer(name: str, target: Path) -> list[str]:
        return [RCLONE, "copy", *OPTIONS, f"store:bucket/{name}", str(target)]

    return peer, environment
