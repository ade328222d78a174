"""FUSE mounts of a bucket, each with a cache of files in memory: their best for reading twice."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from serving import BUCKET, KEYS, Site, packages

DEVICE = Path("/dev/fuse")
NEEDS = {"s3fs": "s3fs", "rclone": "rclone", "fusermount3": "fuse3"}
PATIENCE = 30.0
"""Seconds for a mount to appear."""


def impossible() -> str:
    """Why FUSE cannot be used here, empty where it can.

    Raises:
        ClusterError: The programs are missing and this user cannot install them; says what to install.
    """
    try:
        os.close(os.open(DEVICE, os.O_RDWR))
    except OSError as error:
        return f"{DEVICE} cannot be opened: {error.strerror}"
    packages.ensure(NEEDS)
    return ""


def _s3fs_fuse(site: Site, place: Path, folder: Path) -> list[str]:
    secret = folder / "passwd"
    secret.write_text(f"{KEYS['AWS_ACCESS_KEY_ID']}:{KEYS['AWS_SECRET_ACCESS_KEY']}\n")
    secret.chmod(0o600)
    options = (
        f"url={site.endpoint}",
        "use_path_request_style",
        "listobjectsv2",
        f"passwd_file={secret}",
        f"use_cache={folder / 'cache'}",
        "kernel_cache",
        "ro",
    )
    return ["s3fs", BUCKET, str(place), "-f", *(word for option in options for word in ("-o", option))]


def _rclone(site: Site, place: Path, folder: Path) -> list[str]:
    store = {
        "provider": "Other",
        "endpoint": site.endpoint,
        "access-key-id": KEYS["AWS_ACCESS_KEY_ID"],
        "secret-access-key": KEYS["AWS_SECRET_ACCESS_KEY"],
    }
    options = (
        *(f"--s3-{name}={value}" for name, value in store.items()),
        "--config=",
        "--read-only",
        "--vfs-cache-mode=full",
        f"--cache-dir={folder / 'cache'}",
        "--dir-cache-time=24h",
        "--attr-timeout=24h",
    )
    return ["rclone", "mount", f":s3:{BUCKET}", str(place), *options]


PROGRAMS = {"s3fs-fuse": _s3fs_fuse, "rclone mount": _rclone}


class Mount:
    """A bucket below a directory, from `begin` to `end`. Each time it is as cold as a new one is."""

    def __init__(self, name: str, site: Site, folder: Path) -> None:
        self.place = folder / "mounted"
        self._folder = folder
        self._name, self._site = name, site
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Mount, and wait until it is there.

        Raises:
            RuntimeError: It does not come; with the end of what the program said.
        """
        for folder in (self.place, self._folder / "cache"):
            folder.mkdir(parents=True)
        command = PROGRAMS[self._name](self._site, self.place, self._folder)
        environment: Mapping[str, str] = {**os.environ, **self._site.environment}
        log = self._folder / "log"
        with log.open("wb") as file:
            self._process = subprocess.Popen(command, env=environment, stdout=file, stderr=file)
        deadline = time.monotonic() + PATIENCE
        while not os.path.ismount(self.place):
            if self._process.poll() is not None or time.monotonic() > deadline:
                said = log.read_text(errors="replace")[-2000:]
                self.end()
                raise RuntimeError(f"{self._name} does not mount:\n{said}")
            time.sleep(0.01)

    def end(self) -> None:
        """Unmount, and remove what it kept."""
        subprocess.run(["fusermount3", "-u", "-q", str(self.place)], check=False)
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(PATIENCE)
            self._process.kill()
            self._process.wait()
        subprocess.run(["rm", "-rf", "--one-file-system", str(self._folder)], check=True)


@contextmanager
def mounted(name: str, site: Site, folder: Path) -> Iterator[Path]:
    """A bucket's directory while it is mounted."""
    mount = Mount(name, site, folder)
    mount.begin()
    try:
        yield mount.place
    finally:
        mount.end()
