"""What vsftpd refuses to write, and what the message says: the permission, the name, or the server's disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from podferry.contract.errors import AccessDenied, InvalidSpec, Unavailable
from podferry.storage.store import WriteMode
from tests.support.ftp_site import Site, served
from tests.support.vsftpd import FULL

READ_ONLY = ("write_enable=NO", "cmds_denied=MKD,STOR,RNFR,RNTO,DELE")
NO_RENAMES = ("cmds_denied=RNFR,RNTO,DELE", "cmds_denied=RNFR", "cmds_denied=RNTO")


def with_directory(site: Site, name: str = "d", mode: int = 0o777) -> Path:
    folder = site.folder / name
    folder.mkdir()
    folder.chmod(mode)
    return folder


async def denied(site: Site, name: str, reply: str = "550", mode: WriteMode = WriteMode.OVERWRITE) -> None:
    async with site.opened() as store:
        with pytest.raises(AccessDenied, match=rf"denies access to .*/{name} \({reply}.*Grant these cred"):
            await store.write(name, b"new", mode)


@pytest.mark.parametrize("option", [*READ_ONLY, *NO_RENAMES])
async def test_a_server_that_does_not_allow_to_write_is_named(tmp_path: Path, option: str) -> None:
    with served(tmp_path, option) as site:
        (with_directory(site) / "a").write_bytes(b"old")
        (site.folder / "d/a").chmod(0o666)
        await denied(site, "d/a")
        await denied(site, "d/b", mode=WriteMode.CREATE)
        await denied(site, "d/new/b")
        assert (site.folder / "d/a").read_bytes() == b"old"


async def test_a_server_that_does_not_allow_to_delete_is_named(tmp_path: Path) -> None:
    with served(tmp_path, "cmds_denied=DELE") as site:
        (with_directory(site) / "a").write_bytes(b"old")
        async with site.opened() as store:
            with pytest.raises(AccessDenied, match=r"denies access to .*/d/a"):
                await store.delete(["d/a"])
            await store.delete(["d/missing"])


@pytest.mark.parametrize("mode", [0o555, 0o700])
async def test_a_directory_that_may_not_be_written_to_is_named(tmp_path: Path, mode: int) -> None:
    with served(tmp_path) as site:
        with_directory(site, mode=mode)  # root's
        await denied(site, "d/a", "553")
        await denied(site, "d/new/a", "553")


async def test_a_file_of_another_user_that_may_not_be_replaced_is_named(tmp_path: Path) -> None:
    with served(tmp_path) as site:
        (with_directory(site, mode=0o1777) / "a").write_bytes(b"old")
        async with site.opened() as store:
            with pytest.raises(AccessDenied, match=r"denies access to .*/d/a"):
                await store.write("d/a", b"new")
        assert [path.name for path in (site.folder / "d").iterdir()] == ["a"]


async def test_a_name_that_is_refused_is_not_denied(tmp_path: Path) -> None:
    with served(tmp_path, "deny_file={*.bin}") as site:
        (with_directory(site) / "file").write_bytes(b"x")
        with_directory(site, "d/directory")
        async with site.opened() as store:
            for name in ("d/a.bin", "d/new.bin/a", "d/file/a", "d/directory"):
                with pytest.raises(InvalidSpec, match=rf"does not accept the name .*/{name} \(55"):
                    await store.write(name, b"x")
        assert sorted(path.name for path in (site.folder / "d").iterdir()) == ["directory", "file"]


async def test_a_disk_that_is_full_is_named_each_time(tmp_path: Path) -> None:
    words = r"fails to write .*/d/a \(451 Failure writing to local file.*Free space at the server"
    with served(tmp_path, FULL) as site:
        async with site.opened() as store:
            for _ in range(5):  # the connection is reset, or not
                with pytest.raises(Unavailable, match=words):
                    await store.write("d/a", bytes(9 << 20))
            await store.write("d/a", bytes(1 << 10))
            assert [entry.name async for entry in store.entries()] == ["d/a"]


async def test_a_server_without_passive_mode_is_named(tmp_path: Path) -> None:
    with served(tmp_path, "pasv_enable=NO") as site:
        (site.folder / "a").write_bytes(b"12345")
        async with site.opened() as store:
            for call in (store.children(), store.read("a"), store.write("b", b"1")):
                with pytest.raises(InvalidSpec, match=r"refuses passive mode, .*'550 Permission denied\.'"):
                    await call
