"""What Azure and Cloud Storage share; tests/servers has the contract, on Azurite and fake-gcs-server."""

import pytest

from podferry.contract.errors import InvalidSpec, NotFound, Refused
from podferry.contract.uri import Uri
from podferry.storage.checksum.checksums import crc64
from podferry.storage.multipart import UploadedPart
from podferry.storage.staged_uploads import StagedUploads
from podferry.storage.timeouts_and_limits import MIB


class Staged(StagedUploads):
    """Parts in memory."""

    max_part_bytes, max_parts, upload_bytes, marker = 4, 2, 3, b"m"

    def __init__(self, parts):
        super().__init__(Uri("x", "bucket", "run"))
        self.parts, self.looked = parts, 0

    async def _stage(self, name, upload, number, data):
        self.parts[upload, number] = bytes(data)
        return f"tag {number}"

    async def _has_begun(self, name, upload):
        self.looked += 1
        return (upload, 0) in self.parts


@pytest.fixture
def parts():
    return {}


async def test_a_first_part_shows_the_upload_and_others_follow(parts):
    staged = Staged(parts)
    upload = await staged.begin("a", MIB)
    assert len(upload) == 6
    assert await staged.send("a", upload, 1, b"data") == UploadedPart(1, "tag 1", crc64(b"data"), 4)
    assert parts == {(upload, 0): b"m", (upload, 1): b"data"}
    assert staged.looked == 0


async def test_a_restarted_process_looks_once(parts):
    upload = await Staged(parts).begin("a", MIB)
    staged = Staged(parts)
    for number in (1, 2):
        await staged.send("a", upload, number, b"data")
    assert staged.looked == 1


async def test_parts_of_no_upload_are_refused(parts):
    with pytest.raises(NotFound, match="no longer knows"):
        await Staged(parts).send("a", "0" * 6, 1, b"data")
    assert not parts


async def test_parts_outside_the_limits_are_refused(parts):
    staged = Staged(parts)
    with pytest.raises(InvalidSpec, match="parts this small"):
        await staged.begin("a", MIB - 1)
    upload = await staged.begin("a", MIB)
    for number, data in ((0, b"data"), (3, b"data"), (1, b"larger"), (1, b"")):
        with pytest.raises(Refused, match="does not fit"):
            await staged.send("a", upload, number, data)
