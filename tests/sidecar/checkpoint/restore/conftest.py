"""A commit at its destination, and directories to restore it to."""

from __future__ import annotations

import msgspec
import pytest

from podferry.contract.uri import parse_uri
from podferry.storage.memory.store import Content, MemoryStore
from tests.support.restore_site import COMMIT, FILES, listed


@pytest.fixture
def commit():
    files = tuple(sorted(listed(name, data) for name, data in FILES.items()))
    return msgspec.structs.replace(COMMIT, files=files)


@pytest.fixture
def store(commit, no_waiting):
    made = MemoryStore(parse_uri("memory://downloader/base"), Content())
    made.content.objects = {f"base/run/{file.object}": FILES[file.name] for file in commit.files}
    return made


@pytest.fixture
def directories(tmp_path):
    (tmp_path / "target").mkdir()
    return tmp_path / "target", tmp_path / "staging"
