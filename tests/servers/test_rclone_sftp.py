"""SFTP at `rclone serve sftp`, which announces hard links and rejects each one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from podferry.contract.errors import AlreadyExists
from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.commit.conditional_create import create_checked
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.storage.doctor.finding import Outcome
from podferry.storage.factory import open_store
from podferry.storage.sftp import client
from podferry.storage.store import StoreConfig, WriteMode
from tests.support.doctor_site import findings
from tests.support.rclone import rclone

KEYS = {"SFTP_USERNAME": "user", "SFTP_PASSWORD": "password", "SFTP_INSECURE_IGNORE_HOST_KEY": "true"}
CONFIG = StoreConfig(credentials=KEYS)


@pytest.fixture
def uri(tmp_path: Path) -> Iterator[str]:
    for folder in ("files", "own"):
        (tmp_path / folder).mkdir()
    login = "--user", "user", "--pass", "password"
    with rclone(tmp_path / "files", "sftp", tmp_path / "own/log", *login) as address:
        yield f"sftp://{address}/d"


async def test_a_rejected_hard_link_counts_as_one_that_is_not_announced(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[dict[str, object]] = []
    monkeypatch.setattr(client, "warn", lambda event, **fields: said.append({"event": event, **fields}))
    store = open_store(parse_uri(uri), CONFIG)
    assert await create_checked(LineageStore(store, "run"), "agents/1.json", b"1")
    assert not store.exclusive_create
    assert not await create_checked(LineageStore(store, "run"), "agents/1.json", b"22")
    await store.write("new", b"1", WriteMode.CREATE)
    with pytest.raises(AlreadyExists):
        await store.write("new", b"22", WriteMode.CREATE)
    assert bytes(await store.read("new")) == b"1"
    assert [entry.name async for entry in store.entries()] == ["new", "run/agents/1.json"]
    await store.close()
    (warning,) = said
    assert (warning["extension"], warning["response"]) == ("hardlink@openssh.com", "operation unsupported")


async def test_the_doctor_says_that_commits_are_not_exclusive(uri: str) -> None:
    found = await findings(uri, CONFIG, write=True)
    assert found["exclusive commit"].outcome is Outcome.LIMITED
    reason = "the server announces hardlink@openssh.com and rejects it: operation unsupported"
    assert found["exclusive commit"].measured == f"the store cannot create exclusively: {reason}"
    assert found["delete"].outcome is Outcome.OK
