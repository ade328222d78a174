"""A host name that comes and goes, in a mount namespace of a command's own."""

from __future__ import annotations

import ctypes
import os
import selectors
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from faults.pod import unshared

HOST = "store.podferry.test"
"""".test" is reserved: RFC 6761."""
FILES = {
    "resolv.conf": "nameserver 127.9.9.9\noptions timeout:1 attempts:1\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
"""Nobody listens there: a look-up that the table of hosts cannot answer fails, and may succeed later."""
IN_OPEN = 0x20
"""Source: inotify(7)."""
EVENT = 16
"""Bytes of an event without a name."""


class Names:
    """The table of hosts of one command.

    Args:
        folder: For its files.
    """

    def __init__(self, folder: Path) -> None:
        self._hosts = folder / "hosts"
        self._folder = folder
        for name, text in FILES.items():
            (folder / name).write_text(text)
        self.forget()
        library = ctypes.CDLL(None, use_errno=True)
        self._events = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._events < 0 or library.inotify_add_watch(self._events, os.fsencode(self._hosts), IN_OPEN) < 0:
            raise OSError(ctypes.get_errno(), "inotify")

    def __enter__(self) -> Names:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._events)

    def know(self) -> None:
        """From now on the name is found."""
        self._hosts.write_text(f"127.0.0.1 localhost {HOST}\n")

    def forget(self) -> None:
        """From now on looking it up fails."""
        self._hosts.write_text("127.0.0.1 localhost\n")

    def asked(self, seconds: float) -> bool:
        """Wait for the next look-up; whether there was one in time."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._events, selectors.EVENT_READ)
            if not selector.select(seconds):
                return False
        return bool(os.read(self._events, EVENT))

    def command(self, words: Sequence[str]) -> list[str]:
        """A command that sees this table and no other."""
        places = [str(self._hosts), *(str(self._folder / name) for name in FILES)]
        targets = ["/etc/hosts", *(f"/etc/{name}" for name in FILES)]
        binds = " && ".join(f'mount --bind "${number}" {target}' for number, target in enumerate(targets, 1))
        script = f'{binds} && shift {len(targets)} && exec "$@"'
        return [*unshared(), "sh", "-c", script, "sh", *places, *words]
