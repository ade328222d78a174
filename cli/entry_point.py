"""What the console script calls: Ctrl-C while the command still loads ends it quietly.

Python's own handler would print a traceback of whatever import was running. This module itself imports
next to nothing.
"""

from __future__ import annotations

import os
import signal


def program() -> None:
    """Run `podferry` as a process of its own."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # not ignored (nohup)
        signal.signal(signal.SIGINT, lambda *_: os._exit(128 + signal.SIGINT))
    from podferry.cli import main  # noqa: PLC0415 - this is what takes time

    signal.signal(signal.SIGINT, handler)
    main.program()
