"""Images written by hand: a root file system as one layer."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from pathlib import Path

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # the kernel's words, and Go's


def owned_by_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """A filter for `TarFile.add`: root owns every member."""
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    member.mode = 0o755
    return member


def docker_archive(rootfs: Path, archive: Path, name: str, config: dict[str, object]) -> None:
    """Write an image of one layer, as `docker save` would.

    Args:
        rootfs: The layer, an uncompressed tar file.
        archive: Where to write.
        name: With registry and tag.
        config: The image's `config`: Cmd, Env, …
    """
    with rootfs.open("rb") as file:
        layer = hashlib.file_digest(file, "sha256").hexdigest()
    image = {
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer}"]},
        # One entry a layer: buildah refuses to build on an image whose history counts otherwise.
        "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "podferry tests/cluster"}],
    }
    described = json.dumps(image).encode()
    config_name = f"{hashlib.sha256(described).hexdigest()}.json"
    layer_name = f"{layer}/layer.tar"
    manifest = [{"Config": config_name, "RepoTags": [name], "Layers": [layer_name]}]
    with tarfile.open(archive, "w") as tar:
        tar.add(rootfs, layer_name, filter=owned_by_root)
        _add(tar, config_name, described)
        _add(tar, "manifest.json", json.dumps(manifest).encode())


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))
