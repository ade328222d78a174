"""The top of a share, which has nothing above it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from podferry.contract.errors import BucketNotFound, EmptyDataset
from podferry.contract.uri import Uri
from podferry.storage.doctor.diagnosis import diagnose
from podferry.storage.doctor.finding import Finding, Outcome
from podferry.storage.listing.dataset import open_dataset
from tests.support.samba import Samba, samba
from tests.support.smb_share import CONFIG


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Samba]:
    for name in ("files", "samba"):
        (tmp_path / name).mkdir()
    (tmp_path / "files").chmod(0o777)
    with samba(tmp_path / "files", tmp_path / "samba") as found:
        yield found


async def diagnosed(uri: Uri) -> dict[str, Finding]:
    return {one.check: one async for one in diagnose(uri, CONFIG, write=True)}


async def test_a_new_share_is_a_destination(empty: Samba) -> None:
    found = await diagnosed(Uri("smb", empty.address, "share"))
    assert found["list"].measured == "nothing is there"
    assert [found[name].outcome for name in ("write", "exclusive commit", "delete")] == [Outcome.OK] * 3


async def test_a_share_that_does_not_exist_is_named(empty: Samba) -> None:
    found = await diagnosed(Uri("smb", empty.address, "shaer"))
    assert found["list"].measured.startswith("there is no share for")
    with pytest.raises(BucketNotFound, match="there is no share for"):
        await open_dataset(Uri("smb", empty.address, "shaer"), CONFIG)


async def test_an_empty_share_is_an_empty_dataset(empty: Samba) -> None:
    with pytest.raises(EmptyDataset, match="the dataset is empty"):
        await open_dataset(Uri("smb", empty.address, "share"), CONFIG)
    with pytest.raises(EmptyDataset, match="the dataset is empty"):
        await open_dataset(Uri("smb", empty.address, "share/x"), CONFIG)
