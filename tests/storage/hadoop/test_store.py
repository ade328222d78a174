"""What a store in HDFS does while others replace its files."""

from __future__ import annotations

import pytest

from podferry.contract.errors import Changed
from podferry.contract.uri import parse_uri
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.hadoop.files import FileStatus
from podferry.storage.hadoop.store import HadoopStore
from podferry.storage.timeouts_and_limits import LIMITS

OLD, NEW = b"old", b"the new one is longer"


class Files:
    """One file, which is replaced between two requests."""

    def __init__(self, *replacements: bytes) -> None:
        self.data, self._replacements = OLD, list(replacements)

    async def status(self, path: str) -> FileStatus:
        found = FileStatus(path, len(self.data), f"{self.data[:3]!r}-{len(self.data)}", is_directory=False)
        if self._replacements:
            self.data = self._replacements.pop(0)
        return found

    async def read(self, path: str, start: int, length: int) -> memoryview:
        return memoryview(self.data[start : start + length])


def store_of(files: Files) -> HadoopStore:
    return HadoopStore(StoreLocation(parse_uri("hdfs://name-node/d")), files, LIMITS)  # type: ignore[arg-type]


@pytest.mark.parametrize("replacements", [(NEW,), (b"",), (NEW, NEW, OLD, b"0")])
async def test_a_read_without_a_version_is_of_one(replacements: tuple[bytes, ...]) -> None:
    assert bytes(await store_of(Files(*replacements)).read("a")) == replacements[-1]
    assert bytes(await store_of(Files(NEW)).read("a", 2)) == NEW[2:]


async def test_a_read_of_a_version_is_of_that_one() -> None:
    files = Files()
    tag = (await store_of(files).stat("a")).tag
    assert bytes(await store_of(files).read("a", tag=tag, size=len(OLD))) == OLD
    with pytest.raises(Changed):
        await store_of(Files(NEW)).read("a", tag=tag)
