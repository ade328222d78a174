"""Which change times show that the trainer renamed a file, since podferry's own links move them, too.

A rename sets a file's change time and leaves its modification time. So does each hard link that is added or
removed: the agent links files before it uploads them, and a link that fails, or whose worker is killed,
leaves the same trace. So did an earlier agent, and so does Kubernetes when it gives a volume's files to a
group (`fsGroup`). Hence a change time counts only if it is later than the beginning of this agent, and if no
worker of this agent has ever begun to link the file.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

from podferry.sidecar.runtime.file_identity import Files


class ChangeTimes:
    """What is known about the change times of the files in the checkpoint directory.

    Attributes:
        began_ns: When this agent began, by the clock of the file system, in nanoseconds since the epoch.
        linked: Inodes of the files that a worker of this agent has linked, or was about to.
    """

    def __init__(self) -> None:
        self.began_ns = 0
        self.linked: set[int] = set()

    def load(self, began_ns: int, linked: Iterable[int]) -> None:
        """Take over what earlier workers knew."""
        self.began_ns = began_ns
        self.linked.update(linked)

    def link(self, files: Files) -> bool:
        """These files are about to be linked; returns whether that must be noted before."""
        inodes = {identity.inode for _, identity in files}
        new = not inodes <= self.linked
        self.linked |= inodes
        return new

    def keep(self, inodes: Collection[int]) -> None:
        """Forget all others: the file system gives their numbers to other files."""
        self.linked.intersection_update(inodes)

    def shows_move(self, stat: os.stat_result, written_ns: int) -> bool:
        """Whether the trainer renamed a file or directory, or set its times, after its last write.

        Args:
            stat: The file's or the directory's.
            written_ns: When the last write was, in nanoseconds since the epoch.
        """
        later = stat.st_ctime_ns > max(written_ns, self.began_ns)
        return later and self.is_new(written_ns) and stat.st_ino not in self.linked

    def is_new(self, written_ns: int) -> bool:
        """Whether the last write was in this run: what an earlier one left torn may be renamed, too."""
        return written_ns >= self.began_ns
