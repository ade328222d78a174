import os

import pytest

from podferry.contract.errors import BucketNotFound, Changed, InvalidWish, NotFound
from podferry.contract.uri import parse_uri
from podferry.storage.local import LocalStore
from podferry.storage.naming import is_temporary, temporary_name
from podferry.storage.store import WriteMode


@pytest.fixture
def store(tmp_path):
    return LocalStore(parse_uri(str(tmp_path)) / "root")


@pytest.fixture
def root(tmp_path):
    return tmp_path / "root"


async def listed(store, prefix=""):
    return [entry.name async for entry in store.entries(prefix)]


async def test_a_missing_top_directory_is_a_missing_bucket():
    store = LocalStore(parse_uri("/no-such-mount/data"))
    for call in (store.children(), store.stat("a"), store.read("a"), store.write("a", b"x"), listed(store)):
        with pytest.raises(BucketNotFound, match="/no-such-mount"):
            await call


async def test_a_directory_that_nobody_made_yet_is_empty(store):
    assert await listed(store) == []
    assert await store.children() == []
    with pytest.raises(NotFound):
        await store.stat("a")


async def test_temporary_files_are_listed_nowhere_and_swept_by_nobody(store, root):
    await store.write("d/a", b"x")
    foreign = root / temporary_name("d/b")
    foreign.write_bytes(b"half")
    assert await listed(store) == ["d/a"]
    assert await store.children("d") == ["a"]
    await store.write("d/c", b"x", WriteMode.CREATE)
    assert foreign.exists()
    assert sorted(file.name for file in (root / "d").iterdir() if not is_temporary(file.name)) == ["a", "c"]


def test_temporary_names_lie_beside_their_target():
    assert temporary_name("a/b/c").startswith("a/b/.podferry-")
    assert is_temporary(temporary_name("a/b/c"))
    assert is_temporary(temporary_name("c"))
    assert not is_temporary("a/.podferry/commits/1.json")


async def test_a_failed_write_leaves_no_file(store, root):
    def body():
        yield b"x"
        raise KeyError("mine")

    with pytest.raises(KeyError):
        await store.write("d/a", body())
    assert list((root / "d").iterdir()) == []


async def test_a_name_is_a_file_or_a_directory(store):
    await store.write("a", b"x")
    with pytest.raises(InvalidWish, match="both a file and a directory"):
        await store.write("a/b", b"x")
    await store.write("d/a", b"x")
    with pytest.raises(InvalidWish, match="both a file and a directory"):
        await store.write("d", b"x")


async def test_links_are_followed_but_never_in_circles(store, root, tmp_path):
    await store.write("d/a", b"x")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "o").write_bytes(b"oo")
    (root / "linked").symlink_to(tmp_path / "outside")
    (root / "d" / "self").symlink_to(root)
    (root / "file").symlink_to(root / "d" / "a")
    (root / "dangling").symlink_to(root / "nowhere")
    assert await listed(store) == ["d/a", "file", "linked/o"]


async def test_what_is_no_file_is_no_object(store, root):
    root.mkdir()
    os.mkfifo(root / "pipe")
    (root / "empty" / "deeper").mkdir(parents=True)
    assert await listed(store) == []
    assert await store.children() == []


async def test_a_file_that_is_replaced_by_one_of_the_same_size_has_changed(store):
    await store.write("a", b"one")
    tag = (await store.stat("a")).tag
    await store.write("a", b"two")
    with pytest.raises(Changed, match="was " + tag):
        await store.read("a", tag=tag)


async def test_long_names_are_refused(store):
    with pytest.raises(InvalidWish):
        await store.write("x" * 256, b"x")
    await store.write("x" * 255, b"x")
    assert await listed(store) == ["x" * 255]


async def test_more_than_one_batch_is_listed(store, root):
    root.mkdir()
    for i in range(2503):
        (root / f"{i:04}").touch()
    assert await listed(store) == [f"{i:04}" for i in range(2503)]
