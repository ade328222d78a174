"""The entry point of `podferry`. Verbs that run in every pod start without loading the others."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import NoReturn, TextIO

SMALL_VERBS = {
    "wait": "podferry.sidecar.control.wait_command",
    "drain": "podferry.sidecar.control.prestop_command",
    "checkpoint": "podferry.sidecar.control.done_command",
}
"""Verbs that do not load click: loading it would take longer than they run."""

GET, GET_MODULE = ["dataset", "get"], "podferry.cli.dataset_get"
"""Does not load click either: a small download may take less time than loading it."""

FAST_EXIT_MODULES = {GET_MODULE, "podferry.cli.supervise", *SMALL_VERBS.values()}
"""They have closed everything they opened, and their caller waits for the exit: freeing the rest piece by
piece would take up to 40 ms. The same applies to `run` and to the agent's worker."""

WORKER_FLAG = "--worker"
"""Distinguishes the agent's worker from its supervisor."""

FAILED = 1
"""Exit code after an error."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as in shells: 128 and the signal's number."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a verb; return its exit code."""
    module, verb_arguments = _select(list(sys.argv[1:] if arguments is None else arguments))
    return _run(lambda: import_module(module), verb_arguments)


def program() -> NoReturn:
    """Run `podferry` as a process of its own, with a fast start and exit."""
    # Python has no stream if the launcher closed it; the exit code counts all the same.
    sys.stdout, sys.stderr = (stream or _null_stream() for stream in (sys.stdout, sys.stderr))
    module, arguments = _select(sys.argv[1:])
    is_worker = arguments[:1] == ["agent"] and WORKER_FLAG in arguments
    if is_worker:
        _load_structlog()
    code = _run(lambda: _import_without_gc(module), arguments)
    if module in FAST_EXIT_MODULES or is_worker or arguments[:1] == ["run"]:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def _select(arguments: list[str]) -> tuple[str, list[str]]:
    """Return the module of the verb, and its arguments."""
    verb = arguments[0] if arguments else ""
    if verb in SMALL_VERBS:
        return SMALL_VERBS[verb], arguments[1:]
    if arguments[:2] == GET:
        return GET_MODULE, arguments[2:]
    if verb == "agent" and not {WORKER_FLAG, "--help"} & set(arguments):
        return "podferry.cli.supervise", arguments[1:]
    return "podferry.cli.verbs", arguments


def _null_stream() -> TextIO:
    return os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _load_structlog() -> None:
    """Import structlog without rich, which it uses only for coloured tracebacks: saves 0.13 s at start."""
    if "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment]  # makes `import rich` fail
    try:
        import_module("structlog")
    finally:
        del sys.modules["rich"]


def _import_without_gc(module: str) -> ModuleType:
    gc.disable()  # imported objects stay, so a collection would find nothing
    imported = import_module(module)
    gc.freeze()
    gc.enable()
    return imported


def _run(load: Callable[[], ModuleType], arguments: list[str]) -> int:
    try:
        code: int = load().main(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


if __name__ == "__main__":
    program()
