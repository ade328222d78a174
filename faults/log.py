"""The records of several runs in one file, a JSON line for each episode."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Log:
    """Skips what is done: an episode belongs to its seed.

    Args:
        path: The file, which need not exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        data = path.read_bytes() if path.exists() else b""
        lines = [line for line in data.splitlines(keepends=True) if line.endswith(b"\n")]
        found = [json.loads(line) for line in lines]
        self.records: dict[int, Mapping[str, Any]] = {record["seed"]: record for record in found}
        if data and not data.endswith(b"\n"):
            os.truncate(path, sum(map(len, lines)))  # a run was killed while it wrote its last line

    def add(self, record: Mapping[str, Any]) -> None:
        """Append the record of an episode."""
        self.records[record["seed"]] = record
        with self._path.open("ab") as file:
            file.write(json.dumps(record).encode() + b"\n")
