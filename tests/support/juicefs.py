"""A JuiceFS volume on a file of SQLite and a folder of objects: mounted by FUSE, or as an S3 server."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.cluster.process import wait_until
from tests.support.real_servers import free_port, running

PROGRAM = Path(sysconfig.get_path("scripts"), "juicefs")
FUSE = Path("/dev/fuse")
VOLUME = "volume"
"""Its name, and that of the gateway's bucket."""
OWN_MOUNTS = ("unshare", "--mount", "--propagation", "private")
"""The mount ends with its process, and nobody else sees it."""
QUIET = ("--no-usage-report", "--backup-meta", "0")


def format_volume(folder: Path) -> str:
    """Make a volume in an empty folder; the URL of its metadata."""
    metadata = f"sqlite3://{folder}/metadata.db"
    storage = ["--storage", "file", "--bucket", f"{folder}/objects/", "--trash-days", "0"]
    subprocess.run([PROGRAM, "format", *storage, metadata, VOLUME], check=True, capture_output=True)
    return metadata


@contextlib.contextmanager
def mounted(folder: Path, metadata: str, prefix: Sequence[str] = OWN_MOUNTS) -> Iterator[Path]:
    """The volume's mount point, as this process reaches it.

    Args:
        folder: Gets the mount point, a cache and a log.
        metadata: Of the volume.
        prefix: Words that run a program where the mount is to be.

    Raises:
        RuntimeError: This machine cannot mount it, and why.
    """
    if os.geteuid() != 0 or not FUSE.exists():
        raise RuntimeError(f"JuiceFS needs root and {FUSE}: load the kernel's module fuse")
    point, log, port = folder / "mount", folder / "mount.log", free_port()
    point.mkdir()
    own = ["--cache-dir", str(folder / "cache"), "--metrics", f"127.0.0.1:{port}", *QUIET]
    command = [*prefix, str(PROGRAM), "mount", metadata, str(point), *own]
    with running(command, port, log) as process:
        wait_until(f"JuiceFS to be mounted\n{log}", lambda: "is ready at" in log.read_text(), 60)
        yield Path(f"/proc/{process.pid}/root{point}")


@contextlib.contextmanager
def gateway(folder: Path, metadata: str, key: str, secret: str) -> Iterator[str]:
    """The endpoint of JuiceFS's S3 server; the bucket is `VOLUME`."""
    port, metrics = free_port(), free_port()
    own = ["--cache-dir", str(folder / "gateway"), "--metrics", f"127.0.0.1:{metrics}", *QUIET]
    options = ["--no-banner", "--keep-etag", *own]
    command = [str(PROGRAM), "gateway", metadata, f"127.0.0.1:{port}", *options]
    login = {"MINIO_ROOT_USER": key, "MINIO_ROOT_PASSWORD": secret}
    with running(command, port, folder / "gateway.log", **login):
        yield f"http://127.0.0.1:{port}"
