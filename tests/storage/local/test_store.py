import errno
import os

import pytest

from podferry.contract.errors import (
    AccessDenied,
    BucketNotFound,
    Changed,
    InvalidSpec,
    NotFound,
    Refused,
    Unavailable,
)
from podferry.contract.uri import parse_uri
from podferry.storage.local.store import LocalStore
from podferry.storage.object_names import is_temporary, temporary_name
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


async def test_a_directory_that_does_not_exist_yet_is_empty(store):
    assert await listed(store) == []
    assert await store.children() == []
    with pytest.raises(NotFound):
        await store.stat("a")


async def test_temporary_files_are_not_listed_and_not_removed(store, root):
    await store.write("d/a", b"x")
    foreign = root / temporary_name("d/b")
    foreign.write_bytes(b"half")
    assert await listed(store) == ["d/a"]
    assert await store.children("d") == ["a"]
    await store.write("d/c", b"x", WriteMode.CREATE)
    assert foreign.exists()
    assert sorted(file.name for file in (root / "d").iterdir() if not is_temporary(file.name)) == ["a", "c"]


async def test_a_failed_write_leaves_no_file(store, root):
    def body():
        yield b"x"
        raise KeyError("mine")

    with pytest.raises(KeyError):
        await store.write("d/a", body())
    assert list((root / "d").iterdir()) == []


async def test_a_name_is_a_file_or_a_directory(store):
    await store.write("a", b"x")
    with pytest.raises(InvalidSpec, match="/root/a is a file, not a directory"):
        await store.write("a/b", b"x")
    with pytest.raises(InvalidSpec, match="/root/a is a file, not a directory"):
        await store.write("a/b/c/d", b"x")
    await store.write("d/a", b"x")
    with pytest.raises(InvalidSpec, match="/root/d is a directory, not a file"):
        await store.write("d", b"x")


async def test_links_are_followed_but_not_in_cycles(store, root, tmp_path):
    await store.write("d/a", b"x")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "o").write_bytes(b"oo")
    (root / "linked").symlink_to(tmp_path / "outside")
    (root / "d" / "self").symlink_to(root)
    (root / "file").symlink_to(root / "d" / "a")
    assert await listed(store) == ["d/a", "file", "linked/o"]


async def test_a_dangling_link_is_reported(store, root):
    """If a volume is not mounted, or a cache was cleared, files would be missing silently."""
    await store.write("d/a", b"a")
    (root / "d" / "dangling").symlink_to(root / "nowhere")
    with pytest.raises(NotFound, match=f"{root}/d/dangling is a dangling link .{root}/nowhere.") as caught:
        await listed(store)
    assert "Mount" in caught.value.problems[0].remedy


async def test_only_files_are_objects(store, root):
    root.mkdir()
    os.mkfifo(root / "pipe")
    (root / "empty" / "deeper").mkdir(parents=True)
    assert await listed(store) == []
    assert await store.children() == []


async def test_a_file_replaced_by_one_of_the_same_size_has_changed(store):
    await store.write("a", b"one")
    tag = (await store.stat("a")).tag
    await store.write("a", b"two")
    with pytest.raises(Changed, match="was " + tag):
        await store.read("a", tag=tag)


async def test_long_names_are_refused(store):
    with pytest.raises(InvalidSpec):
        await store.write("x" * 256, b"x")
    await store.write("x" * 255, b"x")
    assert await listed(store) == ["x" * 255]


async def test_more_than_one_batch_is_listed(store, root):
    root.mkdir()
    for i in range(2503):
        (root / f"{i:04}").touch()
    assert await listed(store) == [f"{i:04}" for i in range(2503)]


async def refused(call, kind):
    """The message of the error that a call raises."""
    with pytest.raises(kind) as caught:
        await call
    assert type(caught.value) is kind
    (problem,) = caught.value.problems
    assert not any(word in str(problem) for word in ("credentials", "the store", "object", "bucket"))
    return str(problem)


async def test_a_destination_that_cannot_be_created_is_reported():
    store = LocalStore(parse_uri("/proc/foo"))
    text = await refused(store.write("run/a", b"x"), InvalidSpec)
    assert text == "/proc/foo cannot be created (No such file or directory). Choose a writable location."


async def test_a_destination_that_is_a_file_is_reported(store, root):
    root.write_text("x")
    text = await refused(store.write("run/a", b"x"), InvalidSpec)
    assert text.startswith(f"{root} is a file, not a directory. ")


async def test_a_root_directory_that_is_a_file_is_reported(monkeypatch, tmp_path):
    monkeypatch.setattr("podferry.storage.local.store.ROOT", tmp_path)
    (tmp_path / "disk").touch()
    text = await refused(LocalStore(parse_uri("/disk/run")).write("a", b"x"), BucketNotFound)
    assert text.startswith(f"{tmp_path}/disk is a file, not a directory. ")


@pytest.mark.parametrize(
    ("number", "kind", "said"),
    [
        (
            errno.EROFS,
            AccessDenied,
            "cannot be written (Read-only file system). Choose a writable location.",
        ),
        (errno.EACCES, AccessDenied, "cannot be written (Permission denied). Grant this user access"),
        (errno.EIO, Unavailable, "cannot be written (Input/output error). Check the disk and its mount"),
        (
            errno.ENOTSUP,
            InvalidSpec,
            "cannot be written (Operation not supported). Choose a location on another file",
        ),
    ],
)
async def test_a_refused_write_is_reported_in_terms_of_file_systems(
    store, root, monkeypatch, number, kind, said
):
    await store.write("a", b"x")

    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    assert f"{root}/a {said}" in await refused(store.write("a", b"y"), kind)
    assert bytes(await store.read("a")) == b"x"


async def test_a_mount_that_is_read_only_cannot_be_written(store, root, monkeypatch):
    def fail(self, *_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))

    monkeypatch.setattr("pathlib.Path.mkdir", fail)
    text = await refused(store.write("a", b"x"), AccessDenied)
    assert text == f"{root} cannot be written (Read-only file system). Choose a writable location."


async def test_a_full_disk_is_reported_with_its_free_space(store, root, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def usage(path):
        assert list(root.glob("d/.podferry-*")), "measured before what was written is removed"
        return 100, 99, 1

    monkeypatch.setattr("shutil.disk_usage", usage)
    monkeypatch.setattr(os, "write", fail)
    text = await refused(store.write("d/a", b"x"), Unavailable)
    assert text.startswith(f"no space left at {root}/d/a (")
    assert "(1 B free of 100 B; No space left on device). Free space there" in text
    assert not list(root.glob("d/*"))


async def test_a_missing_or_unreadable_file_is_reported(store, root, monkeypatch):
    text = await refused(store.read("a"), NotFound)
    assert text.startswith(f"there is no file {root}/a (No such file or directory). ")
    await store.write("a", b"x")

    def fail(self, *_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    monkeypatch.setattr("pathlib.Path.open", fail)
    text = await refused(store.read("a"), AccessDenied)
    assert text.startswith(f"{root}/a cannot be read (Permission denied). Grant this user access")


# Claims that a pod has mounted.


@pytest.fixture
def claims(tmp_path, monkeypatch):
    monkeypatch.setattr("podferry.storage.local.store.CLAIMS", tmp_path)
    return tmp_path


async def test_a_claim_is_a_directory(claims):
    (claims / "data").mkdir()
    store = LocalStore(parse_uri("pvc://data/digits"))
    await store.write("a", b"1", WriteMode.CREATE)
    assert (claims / "data/digits/a").read_bytes() == b"1"
    assert await listed(store) == ["a"]
    assert str(store.uri) == "pvc://data/digits"


async def test_a_claim_that_is_not_mounted_is_named(claims):
    store = LocalStore(parse_uri("pvc://data/digits"))
    for call in (store.children(), store.write("a", b"1"), listed(store)):
        with pytest.raises(BucketNotFound, match=r"data.*webhook mounts the claim"):
            await call


@pytest.mark.parametrize("link", ["file", "directory", "../../outside/directory"])
async def test_a_link_does_not_lead_out_of_a_claim(claims, link):
    """It would give the trainer the agent's Secrets, or a file of the image of the same name."""
    outside = claims / "outside"
    (outside / "directory").mkdir(parents=True)
    (outside / "directory/key").write_text("secret")
    (outside / "file").write_text("secret")
    (claims / "data/digits").mkdir(parents=True)
    target = link if link.startswith("..") else outside / link
    (claims / "data/digits/x").symlink_to(target)
    store = LocalStore(parse_uri("pvc://data/digits"))
    calls = (
        listed(store),
        store.children(),
        store.read("x"),
        store.stat("x/key"),
        store.write("x/new", b"1"),
    )
    for call in calls:
        assert f"is a link out of the claim (to {outside}" in await refused(call, Refused)
    with pytest.raises(Refused, match="out of the claim"):
        await listed(LocalStore(parse_uri("pvc://data/digits/x")))
    assert not (outside / "directory/new").exists()


async def test_links_within_a_claim_are_followed(claims):
    (claims / "data/versions/1").mkdir(parents=True)
    (claims / "data/versions/1/a").write_bytes(b"1")
    (claims / "data/latest").symlink_to("versions/1")
    store = LocalStore(parse_uri("pvc://data/latest"))
    assert await listed(store) == ["a"]
    assert bytes(await store.read("a")) == b"1"
    assert await listed(LocalStore(parse_uri("pvc://data"))) == ["latest/a", "versions/1/a"]


async def test_a_file_system_without_hard_links_has_no_exclusive_commits(claims, monkeypatch):
    def link(source, target):
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    (claims / "data").mkdir()
    monkeypatch.setattr(os, "link", link)
    store = LocalStore(parse_uri("pvc://data"))
    await store.write("a", b"1")
    with pytest.raises(InvalidSpec, match="no hard links, which exclusive commits need"):
        await store.write("b", b"1", WriteMode.CREATE)
    assert await listed(store) == ["a"]


@pytest.fixture
def caseless(tmp_path, monkeypatch):
    """A store on a file system that finds names in upper and lower case, such as a mount of Azure Files."""
    root = tmp_path / "root"

    async def found(_, name):
        return any(str(path.relative_to(root)).lower() == name.lower() for path in root.rglob("*"))

    monkeypatch.setattr(LocalStore, "_found", found)
    return LocalStore(parse_uri(str(root)))


@pytest.mark.parametrize("mode", WriteMode)
async def test_names_that_differ_only_in_case_never_replace_each_other(caseless, mode):
    await caseless.write("Dir/Model.pt", b"1", mode)
    for name, other in (("Dir/model.pt", "Dir/Model.pt"), ("dir/new", "Dir")):
        with pytest.raises(InvalidSpec, match=rf"/root/{name} .* only in case .*\({other}\)"):
            await caseless.write(name, b"2", mode)
    await caseless.write("Dir/Model.pt", b"3")
    assert await listed(caseless) == ["Dir/Model.pt"]


async def test_nor_do_uploads_in_parts_and_copies(caseless):
    await caseless.write("Model.pt", b"1")
    await caseless.write("other", b"2")
    upload = await caseless.multipart.begin("model.pt", 4)
    part = await caseless.multipart.send("model.pt", upload, 1, b"2")
    with pytest.raises(InvalidSpec, match="only in case"):
        await caseless.multipart.complete("model.pt", upload, [part])
    await caseless.multipart.abort("model.pt", upload)
    with pytest.raises(InvalidSpec, match="only in case"):
        await caseless.server_copy.copy("other", "model.pt")
    assert await listed(caseless) == ["Model.pt", "other"]
    assert bytes(await caseless.read("Model.pt")) == b"1"


async def test_a_file_system_that_distinguishes_case_is_asked_once(store, monkeypatch):
    asked = []
    lexists = os.path.lexists
    monkeypatch.setattr(os.path, "lexists", lambda path: asked.append(path.name) or lexists(path))
    for name in ("Model.pt", "model.pt", "Model.pt"):
        await store.write(name, name.encode())
    assert asked == ["Model.pt", "mODEL.PT"]
    assert sorted(await listed(store)) == ["Model.pt", "model.pt"]
