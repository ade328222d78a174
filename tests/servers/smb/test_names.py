"""Names and permissions at Samba: what a share has, makes up, refuses or hides."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from podferry.contract.errors import (
    AccessDenied,
    BucketNotFound,
    CredentialsMissing,
    EmptyDataset,
    FerryError,
    InvalidSpec,
)
from podferry.contract.uri import Uri
from podferry.storage.listing.dataset import open_dataset
from podferry.storage.smb.writes import Writer
from podferry.storage.store import WriteMode
from tests.support.samba import KEYS, LIMITED, PASSWORD, Samba
from tests.support.smb_share import CONFIG, listed, opened


async def test_a_name_that_samba_has_made_up_is_named(server: Samba, folder: Path, fresh) -> None:
    for name in ("plain", "EIGHTY~1.TXT", "A B~C.D", "LONGER~A"):
        (folder / name).write_bytes(b"1")
    found = await listed(opened(server, fresh))
    assert sorted(found) == sorted(["plain", "EIGHTY~1.TXT", "A B~C.D", "LONGER~A"])
    for name in ("a?b.txt", "con", 'quote"', "trailing "):
        (folder / name).write_bytes(b"1")
        with pytest.raises(InvalidSpec, match="made-up name") as caught:
            await listed(opened(server, fresh))
        assert ascii(name) in str(caught.value)
        (folder / name).unlink()


async def test_a_directory_and_names_that_are_not_utf_8_are_named_too(
    server: Samba, folder: Path, fresh
) -> None:
    (folder / "sub:1").mkdir()
    (folder / "sub:1/a").write_bytes(b"1")
    with pytest.raises(InvalidSpec, match="made-up name"):
        await listed(opened(server, fresh))
    (folder / "sub:1/a").unlink()
    (folder / "sub:1").rmdir()
    (Path(os.fsdecode(bytes(folder) + b"/latin-\xe9.txt"))).write_bytes(b"1")
    with pytest.raises(FerryError):
        await open_dataset(Uri("smb", server.address, f"share/{fresh}"), CONFIG)


async def test_case_pairs_are_read_and_never_made(server: Samba, folder: Path, fresh) -> None:
    (folder / "a").write_bytes(b"small")
    (folder / "A").write_bytes(b"LARGE!")
    store = opened(server, fresh)
    assert {e.name: bytes(await store.read(e.name, 0, e.size, e.tag)) async for e in store.entries()} == {
        "a": b"small",
        "A": b"LARGE!",
    }
    await store.write("one/Name", b"1")
    for mode in WriteMode:
        with pytest.raises(InvalidSpec, match="differs only in case"):
            await store.write("one/name", b"2", mode)
    assert bytes(await store.read("one/Name")) == b"1"
    await store.close()


async def test_case_pairs_are_not_made_by_parallel_writes(server: Samba, fresh) -> None:
    store = opened(server, fresh)
    names = [*(f"{number}/Loss.csv" for number in range(4)), *(f"{number}/loss.csv" for number in range(4))]
    done = await asyncio.gather(*(store.write(name, name.encode()) for name in names), return_exceptions=True)
    refused = [one for one in done if one is not None]
    assert len(refused) == 4
    assert all(isinstance(one, InvalidSpec) and "differs only in case" in str(one) for one in refused)
    kept = [name for name, one in zip(names, done, strict=True) if one is None]
    assert {name: bytes(await store.read(name)) for name in kept} == {name: name.encode() for name in kept}
    assert sorted(await listed(store)) == sorted(kept)


async def test_directories_that_differ_only_in_case_are_one(server: Samba, fresh) -> None:
    store = opened(server, fresh.upper())
    await store.write("Curves/a/loss.csv", b"1")
    for mode in WriteMode:
        for name in ("curves/a/loss.csv", "Curves/A/more.csv"):
            with pytest.raises(
                InvalidSpec, match=r"differs only in case from one that is there \(Curves/a\)"
            ):
                await store.write(name, b"2", mode)
    assert await listed(store) == {"Curves/a/loss.csv": 1}


async def test_the_case_of_the_location_itself_does_not_matter(server: Samba, folder: Path, fresh) -> None:
    (folder / "Results").mkdir()
    store = opened(server, f"{fresh}/results")
    for mode in WriteMode:
        await store.write(f"curves/{mode.name}", b"1", mode)
    assert len(await listed(store)) == 2


async def test_a_case_pair_that_another_agent_makes_meanwhile_is_named(
    server: Samba, folder: Path, fresh, monkeypatch
) -> None:
    rename = Writer._rename

    async def later(*arguments) -> None:
        (folder / "Loss.csv").write_bytes(b"theirs")
        await rename(*arguments)

    monkeypatch.setattr(Writer, "_rename", later)
    store = opened(server, fresh)
    with pytest.raises(InvalidSpec, match=r"has replaced a file .* differs only in case \(Loss.csv\)"):
        await store.write("loss.csv", b"ours")
    await store.close()


@pytest.mark.parametrize("name", ["con", "d/AUX.txt", "nul", "COM1.bin", "private\uf022use"])
async def test_names_that_no_share_can_have_are_refused(store, name: str) -> None:
    with pytest.raises(InvalidSpec, match="a share cannot have this name"):
        await store.write(name, b"1")


async def test_reserved_characters_are_linux_s_own(store, server: Samba, fresh) -> None:
    """And a colon opens no stream of another file."""
    await store.write("file", b"plain")
    await store.write("file:stream", b"other")
    assert bytes(await store.read("file")) == b"plain"
    assert (server.files / fresh / "file\uf022stream").read_bytes() == b"other"


async def test_long_names(store) -> None:
    for name in ("n" * 255, "ü" * 127):
        await store.write(name, b"1")
    assert {entry.name async for entry in store.entries()} == {"n" * 255, "ü" * 127}


async def test_many_names_in_one_directory(server: Samba, folder: Path, fresh) -> None:
    for number in range(5000):
        (folder / f"a rather long name of a file {number:06}").touch()
    assert len(await listed(opened(server, fresh))) == 5000


async def test_links_are_followed_but_not_upwards(server: Samba, folder: Path, fresh) -> None:
    (folder / "sub/deep").mkdir(parents=True)
    (folder / "sub/deep/c").write_bytes(b"1")
    (folder / "other").symlink_to("sub/deep")
    (folder / "file").symlink_to("sub/deep/c")
    (folder / "sub/up").symlink_to("..")
    (folder / "sub/deep/self").symlink_to(".")
    store = opened(server, fresh)
    assert await store.children() == ["file", "other/", "sub/"]
    assert await listed(store) == {"sub/deep/c": 1, "other/c": 1, "file": 1}


# Who may do what.


@pytest.mark.parametrize("keys", [{**KEYS, "SMB_PASSWORD": "other"}, {**KEYS, "SMB_PASSWORD": ""}])
async def test_a_wrong_password_is_named(server: Samba, keys: dict[str, str]) -> None:
    store = opened(server, keys=keys)
    for call in (store.stat("a"), store.read("a"), store.write("a", b"x"), store.children()):
        with pytest.raises(AccessDenied, match="rejects the user or the password") as caught:
            await call
        assert "SMB_PASSWORD" in str(caught.value)
        assert "other" not in str(caught.value)
    await store.close()


async def test_an_unknown_user_is_no_guest(server: Samba) -> None:
    store = opened(server, share="public", keys={"SMB_USERNAME": "stranger", "SMB_PASSWORD": "p"})
    with pytest.raises(AccessDenied, match="guest"):
        await store.children()
    await store.close()


async def test_a_share_without_accounts(server: Samba, folder: Path, fresh) -> None:
    (folder / "a").write_bytes(b"123")
    store = opened(server, fresh, share="public", keys={"SMB_GUEST": "true"})
    assert bytes(await store.read("a")) == b"123"
    await store.close()


def test_credentials_are_required(server: Samba) -> None:
    with pytest.raises(CredentialsMissing, match="SMB_GUEST"):
        opened(server, keys={})


@pytest.mark.parametrize(("share", "error"), [("none", BucketNotFound), ("IPC$", InvalidSpec)])
async def test_a_wrong_share_is_named(server: Samba, share: str, error) -> None:
    store = opened(server, share=share)
    for call in (store.stat("a"), store.children(), store.delete(["a"])):
        with pytest.raises(error, match="share"):
            await call
    await store.close()


async def test_a_share_for_others_is_denied(server: Samba) -> None:
    store = opened(server, share="private", keys={**KEYS, "SMB_USERNAME": LIMITED})
    with pytest.raises(AccessDenied, match="denies access"):
        await store.children()
    await store.close()


async def test_permission_to_read_but_not_to_list(server: Samba, folder: Path, fresh) -> None:
    (folder / "sub").mkdir()
    (folder / "sub/a").write_bytes(b"1")
    (folder / "b").write_bytes(b"2")
    (folder / "sub").chmod(0o711)
    store = opened(server, fresh, keys={"SMB_USERNAME": LIMITED, "SMB_PASSWORD": PASSWORD})
    assert bytes(await store.read("sub/a")) == b"1"
    with pytest.raises(AccessDenied, match=r"denies access to .*/sub"):
        [entry async for entry in store.entries()]
    with pytest.raises(AccessDenied, match="denies access"):
        await store.write("c", b"3")
    await store.close()


async def test_an_empty_dataset_is_named_and_similar_ones_are_suggested(
    server: Samba, folder: Path, fresh
) -> None:
    (folder / "digits").mkdir()
    (folder / "digits/a").write_bytes(b"1")
    place = Uri("smb", server.address, f"share/{fresh}")
    with pytest.raises(EmptyDataset, match=r"the dataset is empty.*Did you mean .*/digits\?"):
        await open_dataset(place / "digit", CONFIG)
    (server.files / "nothing").mkdir()
    with pytest.raises(EmptyDataset, match="the dataset is empty"):
        await open_dataset(Uri("smb", server.address, "share/nothing"), CONFIG)
