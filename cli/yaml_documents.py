"""Reads the files that people give, and decodes the YAML and JSON documents in them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

from podferry.contract.errors import InvalidSpec
from podferry.contract.yaml_evidence import yaml_evidence

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's loader if PyYAML was built with it: ten times as fast. It ends the process for documents that are
nested more deeply than the stack."""
STDIN = "-"
MAX_NESTING = 1000
OPENINGS = ("[", "{", "- ", "? ")
"""What begins a level of nesting without more indentation, which would make a deep document huge."""


def read_text(filename: str) -> tuple[str, str]:
    """Read a file, or standard input for `-`; return its text, and its name for messages."""
    name = "standard input" if filename == STDIN else filename
    data = sys.stdin.buffer.read() if filename == STDIN else Path(filename).read_bytes()
    try:
        return data.decode(), name
    except UnicodeDecodeError as error:
        raise InvalidSpec.of(f"{name} is not text", str(error), "Write it as UTF-8") from error


def read_documents(text: str, source: str) -> list[Any]:
    """Decode YAML or JSON documents. Raises `InvalidSpec` for other text."""
    try:
        _check_nesting(text, source)
        return [document for document in yaml.load_all(text, Loader=LOADER) if document is not None]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # PyYAML raises ValueError for a date that does not exist.
        raise InvalidSpec.of(f"{source} is not YAML", yaml_evidence(error), "Correct it") from error


def _check_nesting(text: str, source: str) -> None:
    if sum(map(text.count, OPENINGS)) <= MAX_NESTING:
        return
    depth = 0
    for event in yaml.parse(text, Loader=LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_NESTING:
            what = f"{source} is nested more than {MAX_NESTING:,} deep"
            raise InvalidSpec.of(what, "", "Correct it")
