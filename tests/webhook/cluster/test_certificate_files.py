import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from podferry.contract.errors import InvalidSpec
from podferry.webhook.cluster.certificate_files import CertificateFiles, CertificateLoader
from podferry.webhook.cluster.certificates import LEAF_LIFETIME, renew_if_needed
from tests.support.patience import PATIENCE


def write(folder: Path) -> CertificateFiles:
    """Another certificate."""
    made = renew_if_needed(None, ["localhost"], datetime.now(UTC))
    files = CertificateFiles(folder / "tls.crt", folder / "tls.key")
    files.certificate.write_bytes(made.certificate)
    files.key.write_bytes(made.key)
    return files


def test_it_is_loaded_again_when_it_changes(tmp_path: Path) -> None:
    loader = CertificateLoader(write(tmp_path))
    assert abs(loader.expires - datetime.now(UTC) - LEAF_LIFETIME) < timedelta(hours=1)
    assert not loader.refresh()
    write(tmp_path)
    assert loader.refresh()


def test_half_a_change_keeps_the_earlier_one(tmp_path: Path) -> None:
    files = write(tmp_path)
    loader = CertificateLoader(files)
    before = files.key.read_bytes()
    write(tmp_path)
    after = files.key.read_bytes()
    files.key.write_bytes(before)
    with pytest.raises(InvalidSpec, match="do not belong together"):
        loader.refresh()
    files.key.write_bytes(after)
    assert loader.refresh()


def test_stamps_are_signed_with_a_key_that_other_replicas_have(tmp_path: Path) -> None:
    """The kubelet updates the files of one replica before those of another."""
    files = write(tmp_path)
    loader, other = CertificateLoader(files), CertificateLoader(files)
    before = loader.signer().keys
    assert len(before) == 1
    write(tmp_path)
    assert loader.refresh()
    assert loader.signer().keys[0] in other.signer().keys
    assert other.refresh()
    assert set(other.signer().keys) == set(loader.signer().keys) > set(before)


@pytest.mark.parametrize("content", [None, b"", b"-----BEGIN CERTIFICATE-----"])
def test_invalid_files(tmp_path: Path, content: bytes | None) -> None:
    files = write(tmp_path)
    files.certificate.unlink() if content is None else files.certificate.write_bytes(content)
    with pytest.raises(InvalidSpec):
        CertificateLoader(files)


async def test_invalid_files_are_logged_and_the_loop_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = write(tmp_path)
    loader = CertificateLoader(files)
    running = asyncio.create_task(loader.run(0.01))
    first, shown = loader.expires, ""
    files.key.write_bytes(b"")
    async with asyncio.timeout(PATIENCE):
        while "keeping the earlier ones" not in shown:
            await asyncio.sleep(0.01)
            shown += capsys.readouterr().out
        write(tmp_path)
        while "certificate loaded" not in shown:
            await asyncio.sleep(0.01)
            shown += capsys.readouterr().out
    assert loader.expires >= first
    running.cancel()
