"""The imitation of the Hub is read by Hugging Face's own client in the same way; both get the same files."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from podferry.contract.uri import parse_uri
from podferry.storage.listing.dataset import open_dataset
from podferry.storage.store import StoreConfig
from tests.support.hub_server import HubServer, Repo, repository_of, serving
from tests.support.staged import staged

DOWNLOAD = """
import sys
from huggingface_hub import snapshot_download
kind, folder, revision = sys.argv[1:]
print(snapshot_download("org/set", repo_type=kind, local_dir=folder, revision=revision))
"""
LIST = """
import sys
from huggingface_hub import HfApi
for each in HfApi().list_repo_tree("org/set", repo_type=sys.argv[1], recursive=True):
    if hasattr(each, "size"):
        print(each.lfs.sha256 if each.lfs else each.blob_id, each.size, each.path)
"""
FILES = {
    "a": b"1",
    "sub/b c#?%.txt": b"22",
    "sub/large.bin": bytes(range(256)) * 300,
    "sub/deep/d": b"4" * 5000,
}


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubServer]:
    for name, data in FILES.items():
        path = tmp_path / "set" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    found = repository_of(tmp_path / "set")
    gated = Repo(found.revisions, found.commits, frozenset({"good"}), frozenset({"known"}))
    with serving({"datasets/org/set": gated, "models/org/set": found}) as server:
        server.page = 2
        yield server


def client(
    hub: HubServer, folder: Path, code: str, *words: str, token: str = ""
) -> subprocess.CompletedProcess:
    """Run Hugging Face's client, without anything of this user."""
    environ = {
        "PATH": os.environ["PATH"],
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(folder / "home"),
        "HOME": str(folder),
    }
    environ |= {"HF_HUB_DISABLE_XET": "1"} | ({"HF_TOKEN": token} if token else {})
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("kind", ["dataset", "model"])
async def test_both_get_the_same_files(kind: str, hub: HubServer, tmp_path: Path) -> None:
    done = client(hub, tmp_path, DOWNLOAD, kind, str(tmp_path / "theirs"), "main", token="good")
    assert done.returncode == 0, done.stderr
    theirs = {name: (tmp_path / "theirs" / name).read_bytes() for name in FILES}
    config = StoreConfig(credentials={"HF_ENDPOINT": hub.url, "HF_TOKEN": "good"})
    assert await staged(f"hf://{kind}s/org/set", config, tmp_path) == theirs == FILES
    assert hub.leaked == []


async def test_both_list_the_same(hub: HubServer, tmp_path: Path) -> None:
    done = client(hub, tmp_path, LIST, "model")
    assert done.returncode == 0, done.stderr
    config = StoreConfig(credentials={"HF_ENDPOINT": hub.url})
    dataset = await open_dataset(parse_uri("hf://org/set"), config)
    await dataset.store.close()
    ours = [f"{entry.tag} {entry.size} {entry.name}" for entry in dataset.manifest.entries]
    assert sorted(done.stdout.splitlines()) == sorted(ours)


@pytest.mark.parametrize(
    ("token", "revision", "error"),
    [
        ("", "main", "GatedRepoError"),
        ("known", "main", "GatedRepoError"),
        ("good", "none", "RevisionNotFoundError"),
    ],
)
def test_their_client_reads_the_same_errors(
    hub: HubServer, tmp_path: Path, token: str, revision: str, error: str
) -> None:
    done = client(hub, tmp_path, DOWNLOAD, "dataset", str(tmp_path / "theirs"), revision, token=token)
    assert done.returncode != 0
    assert error in done.stderr
