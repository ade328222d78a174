"""Who is let in by OpenSSH's server, and what a refusal says."""

from __future__ import annotations

import subprocess
from importlib import import_module  # what only these tests need is not installed for the others
from pathlib import Path
from typing import Any

import pytest

from podferry.contract.errors import (
    AccessDenied,
    CredentialsMissing,
    InvalidSpec,
    Unavailable,
)
from podferry.storage.timeouts_and_limits import Limits
from tests.support.sftp_site import SftpSite, names


@pytest.fixture
def site(sftp: Any, sftp_files: Path) -> SftpSite:
    return SftpSite(sftp, sftp_files)


async def test_a_wrong_password_is_named(site: SftpSite) -> None:
    await site.fails(AccessDenied, "rejects the login.*offered: a password; user user", SFTP_PASSWORD="other")


async def test_an_unknown_user_is_named(site: SftpSite) -> None:
    await site.fails(AccessDenied, "rejects the login.*user nobody", SFTP_USERNAME="nobody")


async def test_a_key_opens_the_store_as_text_and_as_a_file(site: SftpSite) -> None:
    site.write_one()
    for key in (site.server.private_key.read_text().strip(), str(site.server.private_key)):
        async with site.opened(SFTP_PASSWORD="", SFTP_PRIVATE_KEY=key) as store:
            assert await names(store) == ["a"]


async def test_keys_of_kubernetes_secrets_are_understood(site: SftpSite) -> None:
    site.write_one()
    own = {"SFTP_USERNAME": "", "SFTP_PASSWORD": "", "SFTP_KNOWN_HOSTS": ""}
    known = {"username": "user", "known_hosts": site.server.known_hosts}
    for credential in ({"password": "password"}, {"ssh-privatekey": site.server.private_key.read_text()}):
        async with site.opened(**own, **known, **credential) as store:
            assert await names(store) == ["a"]


async def test_another_key_is_rejected(site: SftpSite, tmp_path: Path) -> None:
    key = _key(tmp_path / "other", "")
    await site.fails(AccessDenied, "offered: 1 key; user", SFTP_PASSWORD="", SFTP_PRIVATE_KEY=key)


async def test_a_key_with_a_passphrase_needs_it(site: SftpSite, tmp_path: Path) -> None:
    key = _key(tmp_path / "other", "secret of the key")
    given = {"SFTP_PASSWORD": "", "SFTP_PRIVATE_KEY": key}
    await site.fails(InvalidSpec, "SFTP_PRIVATE_KEY cannot be used.*set SFTP_PASSPHRASE", **given)
    await site.fails(
        InvalidSpec, "SFTP_PRIVATE_KEY cannot be used.*set SFTP_PASSPHRASE", **given, SFTP_PASSPHRASE="other"
    )
    await site.fails(AccessDenied, "offered: 1 key", **given, SFTP_PASSPHRASE="secret of the key")


async def test_a_text_that_is_no_key_is_named_and_not_shown(site: SftpSite) -> None:
    with pytest.raises(InvalidSpec, match="SFTP_PRIVATE_KEY cannot be used") as caught:
        async with site.opened(SFTP_PRIVATE_KEY="-----BEGIN hidden\n") as store:
            await store.children()
    assert "hidden" not in str(caught.value)


async def test_an_unknown_host_key_is_refused_with_its_fingerprint(site: SftpSite) -> None:
    fingerprint = import_module("asyncssh").import_public_key(_public(site)).get_fingerprint()
    for known, words in (
        (f"elsewhere {_public(site)}", "host key of the server of .* is not known"),
        (f"{site.host} {_other_public()}", "is not the known one: its host key differs"),
        (f"@revoked {site.host} {_public(site)}", "is not known"),
    ):
        with pytest.raises(InvalidSpec, match=words) as caught:
            async with site.opened(SFTP_KNOWN_HOSTS=known) as store:
                await store.children()
        assert fingerprint in str(caught.value)


async def test_any_host_key_is_accepted_only_on_request(site: SftpSite) -> None:
    site.write_one()
    with pytest.raises(CredentialsMissing, match="ssh-keyscan -p"):
        site.store(SFTP_KNOWN_HOSTS="")
    async with site.opened(SFTP_KNOWN_HOSTS="", SFTP_INSECURE_IGNORE_HOST_KEY="true") as store:
        assert await names(store) == ["a"]


async def test_a_closed_port_is_an_outage(site: SftpSite) -> None:
    limits = Limits(retries=1, retry_seconds=1)
    with pytest.raises(Unavailable, match="connection refused"):
        async with site.opened(address="127.0.0.1:1", limits=limits) as store:
            await store.children()


async def test_a_user_without_sftp_is_named(site: SftpSite, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "server").mkdir()
    sshd = import_module("tests.support.openssh").sshd
    with sshd(tmp_path / "files", tmp_path / "server", "ForceCommand echo Welcome") as found:
        known = found.known_hosts
        with pytest.raises(InvalidSpec, match=r"does not offer SFTP.*Welc"):
            async with site.opened(address=found.address, SFTP_KNOWN_HOSTS=known) as store:
                await store.children()


def _public(site: SftpSite) -> str:
    return " ".join(site.server.known_hosts.split()[1:])


def _other_public() -> str:
    asyncssh = import_module("asyncssh")
    key = asyncssh.generate_private_key("ssh-ed25519")
    return str(key.export_public_key().decode().strip())


def _key(path: Path, passphrase: str) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(path)], check=True)
    return path.read_text()
