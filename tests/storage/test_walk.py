"""A listing is complete or an error, whatever a directory does."""

from __future__ import annotations

import pytest

from podferry.contract.errors import Corrupt, FerryError, NotFound, Unavailable
from podferry.contract.manifest import Entry
from podferry.contract.uri import parse_uri
from podferry.storage.walk import MAX_DEPTH, Directory, Walk, children_of

URI = parse_uri("sftp://host/set")
TREE = {
    "": Directory((Entry("a", 1, "t"),), (), ("d", "e")),
    "d": Directory((), ("d/b",), ("d/deep",)),
    "d/deep": Directory((Entry("d/deep/c", 3, "t"),)),
    "e": Directory(),
}


def walk(tree: dict[str, Directory | FerryError], sizes: dict[str, int], most: int = 1000) -> Walk:
    async def list_directory(name: str) -> Directory:
        found = tree.get(name, Directory(problem="550"))
        if isinstance(found, FerryError):
            raise found
        return found

    async def stat(name: str) -> Entry:
        if name not in sizes:
            raise NotFound.of("nothing", "404")
        return Entry(name, sizes[name], "t")

    return Walk(URI, list_directory, stat, 4, most)


async def test_everything_below_is_found() -> None:
    found = await walk(TREE, {"d/b": 2}).files("")
    assert {entry.name: entry.size for entry in found} == {"a": 1, "d/b": 2, "d/deep/c": 3}


async def test_a_directory_that_does_not_exist_is_empty() -> None:
    assert await walk({}, {}).files("none") == []


@pytest.mark.parametrize("gone", ["d", "d/deep", "e"])
async def test_a_directory_that_was_listed_and_is_not_there_is_an_error(gone: str) -> None:
    tree = {name: found for name, found in TREE.items() if name != gone}
    with pytest.raises(Unavailable, match=rf"set/{gone} is listed and cannot be opened.*550"):
        await walk(tree, {"d/b": 2}).files("")


async def test_a_file_that_was_listed_and_is_not_there_is_an_error() -> None:
    with pytest.raises(Unavailable, match=r"set/d/b is listed and cannot be opened.*404"):
        await walk(TREE, {}).files("")


async def test_a_directory_that_is_linked_like_a_file_is_visited() -> None:
    tree = {"": Directory((), ("a", "d"), ()), "d": Directory((), ("d/b",), ())}
    list_directory = walk(tree, {})._list_directory

    async def stat(name: str) -> Entry | None:
        return None if name == "d" else Entry(name, 1, "t")

    found = await Walk(URI, list_directory, stat, 4).files("")
    assert sorted(entry.name for entry in found) == ["a", "d/b"]


async def test_skipped_links_of_all_directories_are_kept() -> None:
    tree = {"": Directory((), (), ("d",), ("x?1",)), "d": Directory((), (), (), ("d/y?2",))}
    walked = walk(tree, {})
    assert await walked.files("") == []
    assert walked.skipped == ["x?1", "d/y?2"]


async def test_a_directory_that_was_removed_is_an_error_like_one_that_is_not_there() -> None:
    with pytest.raises(Unavailable, match=r"set/e is listed and cannot be opened.*410"):
        await walk({**TREE, "e": NotFound.of("it was removed", "HTTP 410")}, {"d/b": 2}).files("")


async def test_other_errors_pass() -> None:
    error = Unavailable.of("reset")
    with pytest.raises(Unavailable, match="reset"):
        await walk({**TREE, "d/deep": error}, {"d/b": 2}).files("")


async def test_directories_without_end_are_named() -> None:
    async def list_directory(name: str) -> Directory:
        return Directory((), (), (f"{name}/x".strip("/"),))

    with pytest.raises(Corrupt, match=rf"no end.*{MAX_DEPTH} levels: x/x/x"):
        await Walk(URI, list_directory, walk({}, {})._stat, 4).files("")


async def test_more_files_than_can_be_real_are_named() -> None:
    assert len(await walk(TREE, {"d/b": 2}, 6).files("")) == 3
    with pytest.raises(Corrupt, match=r"sftp://host/set/.* has no end \(over 5 files and directories\)"):
        await walk(TREE, {"d/b": 2}, 5).files("")


async def test_what_is_listed_twice_is_one() -> None:
    tree = {"": Directory((), ("d/b",), ("d", "d")), "d": Directory((), ("d/b",), ("d",))}
    assert await walk(tree, {"d/b": 2}).files("") == [Entry("d/b", 2, "t")]


async def test_children_without_files_are_left_out():
    tree = {
        "": Directory((Entry("a", 1),), ("u",), ("empty", "full", "nested")),
        "empty": Directory(directories=("empty/x",)),
        "empty/x": Directory(),
        "full": Directory((Entry("full/b", 1),)),
        "nested": Directory(directories=("nested/y",)),
        "nested/y": Directory(unsized=("nested/y/c",)),
    }

    async def listed(name):
        return tree[name]

    assert await children_of(listed, "") == ["a", "full/", "nested/", "u"]
    assert await children_of(listed, "nested") == ["y/"]
