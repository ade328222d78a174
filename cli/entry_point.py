"""What the console script calls: Ctrl-C while the command still loads ends it quietly.

Python's own handler would print a traceback of whatever import was running. This module itself imports
next to nothing.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from types import ModuleType


def program() -> None:
    """Run `podferry` as a process of its own."""
    gc.disable()  # until `main` has imported the verb
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # not ignored (nohup)
        signal.signal(signal.SIGINT, lambda *_: os._exit(128 + signal.SIGINT))
    from podferry.cli import main  # noqa: PLC0415 - Ctrl-C must not meet Python's own handler

    if not main.is_supervisor(sys.argv[1:]):
        _load_msgspec()
    signal.signal(signal.SIGINT, handler)
    main.program()


def _load_msgspec() -> None:
    """Import msgspec without what it hardly needs: 5 ms less are spent.

    `typing` has what it takes from typing_extensions. It also imports uuid, which asks `platform` for the
    name of the system and nothing else.
    """
    if {"typing_extensions", "platform", "msgspec"} & sys.modules.keys():
        return
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]  # makes its import fail
    sys.modules["platform"] = _Platform("platform")
    try:
        import msgspec  # noqa: F401, PLC0415
    finally:
        del sys.modules["typing_extensions"], sys.modules["platform"]


class _Platform(ModuleType):
    """Takes the place of `platform` for uuid."""

    @staticmethod
    def system() -> str:
        """See `platform.system`."""
        return os.uname().sysname


if __name__ == "__main__":
    program()
