"""Directories of fsspec file systems; of real servers in `tests/servers/test_unlistable.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
from fsspec.implementations.local import LocalFileSystem

from podferry.contract.errors import AccessDenied, FerryError, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.store import Store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a", "sub/b", "sub/deep/c", ".podferry-0123456789abcdef.tmp"):
        path = tmp_path / "set" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"12345")
    (tmp_path / "set/empty/empty").mkdir(parents=True)
    return tmp_path


@pytest.fixture(autouse=True)
def refused(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of directories that may not be listed. Links are shown as links, as some file systems do."""
    names: set[str] = set()
    ls = LocalFileSystem.ls

    def listed(self: LocalFileSystem, path: str, detail: bool = False) -> list[dict[str, object]]:
        if Path(path).name in names:
            raise PermissionError(13, "Permission denied", path)
        return [{**info, "type": "link" if info["islink"] else info["type"]} for info in ls(self, path, True)]

    monkeypatch.setattr(LocalFileSystem, "ls", listed)
    return names


def opened(folder: Path, name: str = "set") -> Store:
    return open_store(parse_uri(f"file://{folder}/{name}?engine=fsspec"))


async def names(store: Store) -> list[str]:
    return sorted([entry.name async for entry in store.entries()])


async def test_files_of_all_levels_are_listed_and_children_have_files(folder: Path) -> None:
    assert await names(opened(folder)) == ["a", "sub/b", "sub/deep/c"]
    assert await opened(folder).children() == ["a", "sub/"]
    assert await opened(folder).children("sub") == ["b", "deep/"]


@pytest.mark.parametrize("name", ["none", "set/none", "set/a", "set/a/none"])
async def test_what_is_no_directory_is_empty(folder: Path, name: str) -> None:
    assert await names(opened(folder, name)) == []
    assert await opened(folder, name).children() == []


@pytest.mark.parametrize("name", ["set", "sub", "deep"])
async def test_what_cannot_be_listed_is_an_error(folder: Path, refused: set[str], name: str) -> None:
    refused.add(name)
    with pytest.raises(AccessDenied, match=name):
        await names(opened(folder))
    if name == "deep":
        assert await opened(folder).children() == ["a", "sub/"]
    else:
        with pytest.raises(AccessDenied):
            await opened(folder).children()


async def test_links_are_followed(folder: Path) -> None:
    (folder / "set/link").symlink_to("a")
    (folder / "set/sub/other").symlink_to("deep")
    assert await names(opened(folder)) == ["a", "link", "sub/b", "sub/deep/c", "sub/other/c"]


async def test_a_link_that_leads_nowhere_is_named(folder: Path) -> None:
    (folder / "set/gone").symlink_to("nowhere")
    with pytest.raises(FerryError, match="set/gone") as caught:
        await names(opened(folder))
    assert isinstance(caught.value, Unavailable)
