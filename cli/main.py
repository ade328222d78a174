"""The entry of `podferry`. What runs in every pod is small and starts before the rest is loaded."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import NoReturn, TextIO

SMALL = {
    "wait": "podferry.sidecar.control.wait_command",
    "drain": "podferry.sidecar.control.prestop_command",
    "checkpoint": "podferry.sidecar.control.done_command",
}
"""Verbs that parse their own words: loading a library for that would take longer than they do."""

GET, GET_MODULE = ["dataset", "get"], "podferry.cli.dataset_get"
"""Parses its own words as well: what comes after it may take less time than a library takes to load."""

EARLY_IMPORTS = {GET_MODULE, "podferry.cli.supervise", *SMALL.values()}
"""They have closed what is their own, and somebody waits for their end: freeing the rest piece by piece would
take up to 40 ms. The same goes for `run`, and for its agent's worker."""

WORKER = "--worker"
"""Tells the agent's second half from the first; a pod waits until it has loaded what it needs."""

INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 and the signal's number, as shells have it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a verb; the exit code."""
    module, words = _chosen(list(sys.argv[1:] if arguments is None else arguments))
    return _run(lambda: import_module(module), words)


def program() -> NoReturn:
    """`podferry` as a process of its own: its start and its end count where little is to be done between."""
    # Where a launcher has closed them, Python has none: then nobody listens, but the exit code still counts.
    sys.stdout, sys.stderr = (stream or _nobody() for stream in (sys.stdout, sys.stderr))
    module, words = _chosen(sys.argv[1:])
    is_worker = words[:1] == ["agent"] and WORKER in words
    if is_worker:
        _load_logs()
    code = _run(lambda: _loaded(module), words)
    if module in EARLY_IMPORTS or is_worker or words[:1] == ["run"]:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def _chosen(words: list[str]) -> tuple[str, list[str]]:
    """The module that has a verb, and the words for it."""
    verb = words[0] if words else ""
    if verb in SMALL:
        return SMALL[verb], words[1:]
    if words[:2] == GET:
        return GET_MODULE, words[2:]
    if verb == "agent" and not {WORKER, "--help"} & set(words):
        return "podferry.cli.supervise", words[1:]
    return "podferry.cli.verbs", words


def _nobody() -> TextIO:
    return os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _load_logs() -> None:
    """Load structlog without rich, of which it could make coloured tracebacks: that is 0.13 s of a start."""
    if "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment]  # as the import system marks what is not there
    try:
        import_module("structlog")
    finally:
        del sys.modules["rich"]


def _loaded(module: str) -> ModuleType:
    gc.disable()  # what is loaded stays, so looking through it finds nothing
    found = import_module(module)
    gc.freeze()
    gc.enable()
    return found


def _run(load: Callable[[], ModuleType], words: list[str]) -> int:
    try:
        code: int = load().main(words)
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


if __name__ == "__main__":
    program()
