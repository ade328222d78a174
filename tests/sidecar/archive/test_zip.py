from __future__ import annotations

import zipfile

import pytest

from podferry.contract.errors import Corrupt
from podferry.sidecar.archive import zip as unzip
from podferry.sidecar.config.tuning import PrefetchSettings
from tests.support.archive_site import overlapping, refused, zip_of


def zip_member(mode):
    """The header of a zip member of another kind."""
    info = zipfile.ZipInfo("odd")
    info.create_system, info.external_attr = 3, mode << 16
    return info


@pytest.mark.parametrize(
    ("mode", "words"), [(0o120777, "symbolic link"), (0o020666, "device"), (0o010666, "pipe")]
)
async def test_a_zip_member_that_is_not_a_file_is_refused(site, mode, words):
    site.put("x.zip", zip_of([("good", b"1"), (zip_member(mode), b"/etc/passwd")]))
    assert words in str(await refused(site))
    assert ("read", "x.zip") not in site.content.calls[3:]  # its directory was enough


async def test_a_nul_in_a_zip_name_hides_nothing(site):
    data = zip_of([("good.png", b"1")]).replace(b"good.png", b"goo\0.png")
    site.put("x.zip", data)
    assert "control characters" in str(await refused(site))


async def test_an_encrypted_zip_and_other_methods_are_refused(site):
    data = bytearray(zip_of([("secret", b"1")]))
    at = data.index(b"PK\x01\x02")
    data[at + 8] |= 1
    site.put("x.zip", bytes(data))
    assert "an encrypted file" in str(await refused(site))
    site.put("x.zip", zip_of([("a", b"1")], zipfile.ZIP_BZIP2))
    assert "method 12" in str(await refused(site))


async def test_a_zip_directory_that_needs_too_much_memory_is_refused(site, monkeypatch):
    monkeypatch.setattr(unzip, "MAX_DIRECTORY_BYTES", 100)
    monkeypatch.setattr("podferry.sidecar.archive.archive_reader.MAX_DIRECTORY_BYTES", 200_000)
    site.put("x.zip", zip_of([(f"{i:04}" + "n" * 200, b"") for i in range(1000)]))
    assert "directory of the archive x.zip is too long" in str(await refused(site))


async def test_a_zip_with_a_long_directory_is_read(site):
    tree = {f"{i:04}" + "n" * 200: b"%d" % i for i in range(1000)}
    site.settings = PrefetchSettings(range_bytes=100_000, buffer_bytes=100_000)
    site.put("x.zip", zip_of(tree.items()))
    await site.start()
    assert site.held() == tree


async def test_overlapping_members_are_refused(site):
    site.put("x.zip", overlapping())
    assert "overlap" in str(await refused(site, Corrupt)).lower()
