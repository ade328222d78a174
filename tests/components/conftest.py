"""Fixtures of the components' tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from xxhash import xxh3_128_hexdigest

from podferry.components import store_access
from podferry.contract.destination.commit import (
    DOUBTFUL_FORMAT,
    FORMAT,
    Commit,
    CommittedFile,
    Confidence,
    Doubt,
    DoubtKind,
    commit_name,
    encode_commit,
)
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store

RECORDED = Path(__file__).parents[1] / "data" / "kfp-pods"


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    """A dataset of three files, 300 bytes."""
    root = tmp_path / "data"
    root.mkdir()
    for index in range(3):
        (root / f"{index}.bin").write_bytes(bytes([index]) * 100)
    return root


@pytest.fixture
def secret_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The mount path of a step's Secret; a test that needs the Secret creates the directory."""
    directory = tmp_path / "secret"
    monkeypatch.setattr(store_access, "SECRET_DIR", directory)
    return directory


@pytest.fixture
def destination(tmp_path: Path) -> str:
    """An empty destination."""
    (tmp_path / "models").mkdir()
    return f"file://{tmp_path}/models"


@pytest.fixture
def recorded() -> Callable[[str], dict[str, Any]]:
    """A pod as KFP's own backend created it."""

    def read(name: str) -> dict[str, Any]:
        pod: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_text())
        return pod

    return read


@pytest.fixture
def train(destination: str) -> Callable[..., Commit]:
    """Write to the destination what an agent writes: data, a commit, its record."""

    def write(
        lineage: str, run: str | None, step: int = 1, content: bytes = b"weights", doubt: str = ""
    ) -> Commit:
        file = CommittedFile("last.pt", f"last-{step}/last.pt", len(content), xxh3_128_hexdigest(content))
        created = datetime(2026, 1, 1, tzinfo=UTC)
        commit = Commit(
            DOUBTFUL_FORMAT if doubt else FORMAT,
            step,
            lineage,
            f"last-{step}",
            "last",
            step,
            created,
            (file,),
            "w",
            1,
            run,
            confidence=Confidence.DOUBTFUL if doubt else Confidence.SURE,
            doubts=(Doubt(DoubtKind.FEWER, doubt),) if doubt else (),
        )
        objects = {
            f"{lineage}/{file.object}": content,
            f"{lineage}/{commit_name(step)}": encode_commit(commit),
            f"{lineage}/.podferry/writer.json": json.dumps({"writer": "w", "run": run}).encode(),
        }
        asyncio.run(_write(destination, objects))
        return commit

    return write


async def _write(destination: str, objects: dict[str, bytes]) -> None:
    store = open_store(parse_uri(destination))
    for name, body in objects.items():
        await store.write(name, body)
    await store.close()
