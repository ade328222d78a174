from __future__ import annotations

import msgspec
import pytest
import xxhash

from podferry.contract.errors import Refused
from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.restore.downloader import CommitDownloader
from podferry.sidecar.checkpoint.restore.verified_staging import VerifiedStaging, committed_checksum
from tests.support.restore_site import COMMIT, FILES, SMALL, held, interrupted, listed


async def test_staged_files_of_another_commit_are_removed_first(store, commit, directories):
    await interrupted(store, commit, directories)
    file = listed("other", b"xyz")
    store.content.objects[f"base/run/{file.object}"] = b"xyz"
    other = msgspec.structs.replace(COMMIT, files=(file,))
    seen = []
    progress = lambda done, total: seen.append(held(directories[1] / "files"))  # noqa: E731
    await CommitDownloader(LineageStore(store, "run"), progress, SMALL).download(other, *directories)
    assert seen[0] == {}
    assert held(directories[0]) == {"other": b"xyz"}


async def test_a_staged_file_with_other_content_is_fetched_again(store, commit, directories):
    """A later commit lists the same names and sizes, with other content of one of them."""
    store.faults.remove(await interrupted(store, commit, directories))
    assert held(directories[1] / "files")["e/one"] == b"1"
    newer = listed("e/one", b"2")
    store.content.objects[f"base/run/{newer.object}"] = b"2"
    files = tuple(newer if file.name == newer.name else file for file in commit.files)
    await CommitDownloader(LineageStore(store, "run"), settings=SMALL).download(
        msgspec.structs.replace(COMMIT, files=files), *directories
    )
    assert held(directories[0]) == {**FILES, "e/one": b"2"}


def test_the_committed_checksum_is_that_of_the_content(tmp_path):
    staging = VerifiedStaging(tmp_path, [listed("e/one", b"1")], parse_uri("memory://b"))
    (entry,) = staging.manifest.entries
    assert committed_checksum(entry).value == xxhash.xxh3_128_digest(b"1")


def test_a_staging_directory_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    staging = VerifiedStaging(tmp_path / "file", [], parse_uri("memory://b"))
    with pytest.raises(Refused, match="cannot be created"):
        staging.prepare()
