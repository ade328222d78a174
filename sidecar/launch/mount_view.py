"""From where a run saw its directories: what is missing there later was removed, and is not merely elsewhere.

Another container has another /dev/shm, and a volume may not be mounted at the moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from podferry.sidecar.staging.ownership_record import boot_id

MOUNTS = Path("/proc/self/ns/mnt")
"""Identifies the mount namespace, as long as the machine runs. Source: namespaces(7)."""


class MountView(msgspec.Struct, frozen=True):
    """What a process sees.

    Attributes:
        namespace: Of the boot and its mounts; empty if the system has none.
        devices: Of each directory, or of the nearest one above it that exists.
    """

    namespace: str = ""
    devices: dict[str, int] = {}

    def is_present(self) -> bool:
        """Whether this process sees the same volumes at the same places."""
        return bool(self.namespace) and view_of(self.devices) == self


def view_of(directories: Iterable[str]) -> MountView:
    """What this process sees of these directories."""
    with suppress(OSError):
        namespace = f"{boot_id()} {MOUNTS.readlink()}"
        return MountView(namespace, {path: _device(Path(path)) for path in directories})
    return MountView()


def _device(path: Path) -> int:
    return next(one for one in (path, *path.parents) if one.exists()).stat().st_dev
