"""The entry point of `podferry`. Verbs that run in every pod start without loading the others.

This module loads little itself: each pod waits for a supervisor, which needs not even msgspec.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import NoReturn

from podferry.cli.process_exit import discard_output, exit_process, null_stream
from podferry.contract.exit_codes import EXIT_FAILED, EXIT_INTERRUPTED
from podferry.sidecar.runtime.messages import print_message, print_problems

SMALL_VERBS = {
    "wait": "podferry.sidecar.control.wait_command",
    "drain": "podferry.sidecar.control.prestop_command",
    "checkpoint": "podferry.sidecar.control.done_command",
}
"""Verbs that do not load click: loading it would take longer than they run."""

GET, GET_MODULE = ["dataset", "get"], "podferry.cli.dataset.get"
"""Does not load click either: a small download may take less time than loading it."""

WORKER_FLAG = "--worker"
"""Distinguishes the agent's worker from its supervisor."""
SUPERVISOR_MODULE = "podferry.cli.agent.supervise"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a verb; return its exit code."""
    module, verb_arguments = _select(list(sys.argv[1:] if arguments is None else arguments))
    return _run(lambda: import_module(module), verb_arguments)


def program() -> NoReturn:
    """Run `podferry` as a process of its own, with a fast start and exit."""
    # Python has no stream if the launcher closed it; the exit code counts all the same.
    sys.stdout, sys.stderr = (stream or null_stream() for stream in (sys.stdout, sys.stderr))
    gc.disable()  # imported objects stay, so a collection would find nothing
    module, arguments = _select(sys.argv[1:])
    if arguments[:1] == ["agent"] and WORKER_FLAG in arguments:
        _load_structlog()
    code = EXIT_INTERRUPTED  # also if a second Ctrl-C arrives while the first is being handled
    try:
        code = _run(lambda: _imported(module), arguments)
    except Exception:  # noqa: BLE001 - a defect: its traceback is printed, as Python does
        sys.excepthook(*sys.exc_info())
        code = EXIT_FAILED
    finally:
        exit_process(code)


def _select(arguments: list[str]) -> tuple[str, list[str]]:
    """Return the module of the verb, and its arguments."""
    verb = arguments[0] if arguments else ""
    if verb in SMALL_VERBS:
        return SMALL_VERBS[verb], arguments[1:]
    if arguments[:2] == GET:
        return GET_MODULE, arguments[2:]
    if is_supervisor(arguments):
        return SUPERVISOR_MODULE, arguments[1:]
    return "podferry.cli.verbs", arguments


def is_supervisor(arguments: Sequence[str]) -> bool:
    """Whether these run the agent's supervisor."""
    return list(arguments[:1]) == ["agent"] and not {WORKER_FLAG, "--help"} & set(arguments)


def _load_structlog() -> None:
    """Import structlog without rich, which it uses only for coloured tracebacks: saves 0.13 s at start."""
    if "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment]  # makes `import rich` fail
    try:
        import_module("structlog")
    finally:
        del sys.modules["rich"]


def _imported(module: str) -> ModuleType:
    """Import a verb; from then on, the collector looks only at what the verb makes."""
    imported = import_module(module)
    gc.freeze()
    gc.enable()
    return imported


def _run(load: Callable[[], ModuleType], arguments: list[str]) -> int:
    try:
        code: int = load().main(arguments)
        # Not at exit: the output counts, and an error in writing it is an error of the verb.
        sys.stdout.flush()
    except SystemExit as end:  # argparse has printed the reason
        return _exit_code(end)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001 - defects are raised again
        return _report(error)
    return code


def _report(error: Exception) -> int:
    """Print an error as sentences; return its exit code. What is none of podferry's errors is raised."""
    from podferry.contract.errors import FerryError  # noqa: PLC0415 - most processes print none
    from podferry.contract.extras import missing_extra  # noqa: PLC0415

    if isinstance(error, BrokenPipeError):
        discard_output()
    elif isinstance(error, FerryError):
        print_problems(error.problems)
    elif isinstance(error, OSError):
        file = f": {error.filename}" if error.filename else ""
        print_message(f"podferry: {error.strerror or error}{file}", "red")
    elif isinstance(error, ImportError) and (problem := missing_extra(error)) is not None:
        print_problems([problem])
    else:
        raise error
    return EXIT_FAILED


def _exit_code(end: SystemExit) -> int:
    return end.code if isinstance(end.code, int) else int(end.code is not None)


if __name__ == "__main__":
    program()
